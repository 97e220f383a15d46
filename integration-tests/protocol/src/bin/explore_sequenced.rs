//! A program that explores the calls of a sequenced store and checks every promise in every history.

use std::process::ExitCode;

use leaderelection_protocol_tests::exploring::explore_histories;
use leaderelection_protocol_tests::sequenced::{larger, standard};

fn main() -> ExitCode {
    explore_histories(standard(), larger())
}
