//! A program that simulates elections, or replays one seed.

use std::process::ExitCode;

use clap::Parser;
use leaderelection_proofs::kit::Campaign;
use leaderelection_proofs::sessions::simulation::Sessions;
use leaderelection_proofs::simulation::Layout;

/// Simulates elections with many faults, and checks the promises of the library.
///
/// Ends with status 0 if every promise was kept. If a promise was broken, prints the history and, as the last
/// line, `violated: <property> seed: <seed>`, and ends with status 1.
#[derive(Debug, Parser)]
struct Arguments {
    /// Simulate a lock with one object per write, in a store that can only create
    #[arg(long, group = "layout")]
    sequenced: bool,
    /// Simulate a move from one lock to another
    #[arg(long, group = "layout")]
    two_locks: bool,
    /// Simulate a lock of which two of three parts decide
    #[arg(long, group = "layout")]
    three_locks: bool,
    /// Simulate members that lead many locks through sessions
    #[arg(long, group = "layout")]
    sessions: bool,
    #[command(flatten)]
    campaign: Campaign,
}

fn main() -> ExitCode {
    match Arguments::parse() {
        Arguments { sessions: true, campaign, .. } => campaign.carry_out(&Sessions),
        Arguments { sequenced: true, campaign, .. } => campaign.carry_out(&Layout::Sequenced),
        Arguments { two_locks: true, campaign, .. } => campaign.carry_out(&Layout::TwoLocks),
        Arguments { three_locks: true, campaign, .. } => campaign.carry_out(&Layout::ThreeLocks),
        Arguments { campaign, .. } => campaign.carry_out(&Layout::OneObject),
    }
}
