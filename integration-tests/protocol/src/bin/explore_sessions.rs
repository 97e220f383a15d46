//! A program that explores the state machine of sessions and checks every promise in every history.

use std::process::ExitCode;

use clap::Parser;
use leaderelection_protocol_tests::exploring::{Setups, Wanted};
use leaderelection_protocol_tests::sessions::model::{electable, larger, standard};

/// Explores every history of a few processes that lead locks through sessions.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    wanted: Wanted,
    /// The setting to change, such as `locks=1`, and its value.
    #[arg(long, value_parser = setting)]
    set: Vec<(String, u64)>,
}

fn setting(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write name=value")?;
    Ok((name.to_owned(), value.parse().map_err(|error| format!("{error}"))?))
}

fn main() -> ExitCode {
    let Args { wanted, set } = Args::parse();
    let usual = Setups { promises: standard(), electable: electable() };
    let larger = Setups { promises: larger(), electable: Vec::new() };
    let mut setups = match wanted.choose(usual, larger) {
        Ok(setups) => setups,
        Err(unknown) => return unknown,
    };
    for question in setups.iter_mut() {
        set.iter().for_each(|(name, value)| question.setup.set(name, *value));
    }
    setups.explore(&wanted)
}
