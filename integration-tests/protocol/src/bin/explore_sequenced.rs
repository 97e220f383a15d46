//! A program that explores the calls of a sequenced store and checks every promise in every history.

use std::process::ExitCode;

use clap::Parser;
use leaderelection_protocol_tests::exploring::Wanted;
use leaderelection_protocol_tests::sequenced::{larger, standard};

/// Explores every history of a few processes that share one lock in a store that can only create.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    wanted: Wanted,
}

fn main() -> ExitCode {
    Args::parse().wanted.explore(standard(), larger())
}
