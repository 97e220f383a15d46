//! A program that explores the move from one lock to another and checks every promise in every history.

use std::process::ExitCode;

use clap::Parser;
use leaderelection_protocol_tests::exploring::{Setups, Wanted, status};
use leaderelection_protocol_tests::migration::standard;

/// Explores every history of a few processes that move from one lock to another.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    wanted: Wanted,
}

fn main() -> ExitCode {
    let Args { wanted } = Args::parse();
    let of = |promises| Setups { promises, electable: Vec::new() };
    match wanted.choose(of(standard()), of(Vec::new())) {
        Ok(setups) => status(setups.promises.iter().all(|question| wanted.keeps_every_promise(question))),
        Err(unknown) => unknown,
    }
}
