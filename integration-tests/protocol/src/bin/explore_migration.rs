//! A program that explores the move from one lock to another and checks every promise in every history.

use std::process::ExitCode;

use leaderelection_protocol_tests::exploring::explore_histories;
use leaderelection_protocol_tests::migration::{larger, standard};

fn main() -> ExitCode {
    explore_histories(standard(), larger())
}
