//! A program that explores the protocol's state machine and checks every promise in every history.

use std::process::ExitCode;

use clap::Parser;
use leaderelection_protocol_tests::exploring::{Setups, Wanted};
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
    wanted.choose(usual, larger).map_or_else(|unknown| unknown, |setups| setups.explore(&wanted))
}
