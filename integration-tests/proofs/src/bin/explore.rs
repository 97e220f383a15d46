//! A program that explores the models of the protocol and checks every promise in every history.

use std::process::ExitCode;

use clap::Parser;
use leaderelection_proofs::kit::Args;
use leaderelection_proofs::models;

fn main() -> ExitCode {
    Args::parse().explore(models())
}
