//! A program that explores the protocol's state machine and checks every promise in every history.

use std::process::ExitCode;

use clap::Parser;
use leaderelection_protocol_tests::exploring::{Setups, Wanted, is_always_electable, status};
use leaderelection_protocol_tests::model::{electable, electable_larger, larger, standard};

/// Explores every history of a few candidates.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    wanted: Wanted,
}

fn main() -> ExitCode {
    let Args { wanted } = Args::parse();
    let usual = Setups { promises: standard(), electable: electable() };
    let larger = Setups { promises: larger(), electable: electable_larger() };
    let setups = match wanted.choose(usual, larger) {
        Ok(setups) => setups,
        Err(unknown) => return unknown,
    };
    let kept = setups.promises.iter().all(|question| wanted.keeps_every_promise(question));
    status(kept && setups.electable.iter().all(is_always_electable))
}
