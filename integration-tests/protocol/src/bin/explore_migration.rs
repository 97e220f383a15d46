//! A program that explores the move from one lock to another and checks every promise in every history.

use std::process::ExitCode;

use clap::Parser;
use leaderelection_protocol_tests::exploring::Wanted;
use leaderelection_protocol_tests::migration::standard;

/// Explores every history of a few processes that move from one lock to another.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    wanted: Wanted,
}

fn main() -> ExitCode {
    Args::parse().wanted.explore(standard(), Vec::new())
}
