//! The program of the proofs: it explores the models, simulates elections, and counts and measures what sessions take.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use leaderelection_proofs::kit::{Args, Campaign};
use leaderelection_proofs::sessions::simulation::Sessions;
use leaderelection_proofs::simulation::Layout;
use leaderelection_proofs::{costs, gaps, models, regions};

/// Proves the protocol.
#[derive(Debug, Parser)]
struct Command {
    #[command(subcommand)]
    program: Program,
}

#[derive(Debug, Subcommand)]
enum Program {
    Explore(Args),
    Simulate(Simulate),
    Costs(costs::Arguments),
    Gaps(gaps::Arguments),
    Regions(regions::Arguments),
}

/// Simulates elections with many faults, and checks the promises of the library.
///
/// Ends with status 0 if every promise was kept. If a promise was broken, prints the history and, as the last
/// line, `violated: <property> seed: <seed>`, and ends with status 1.
#[derive(clap::Args, Debug)]
struct Simulate {
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

fn main() -> std::io::Result<ExitCode> {
    match Command::parse().program {
        Program::Explore(args) => return Ok(args.explore(models())),
        Program::Simulate(simulate) => return Ok(simulate.carry_out()),
        Program::Costs(arguments) => arguments.carry_out()?,
        Program::Gaps(arguments) => arguments.carry_out(),
        Program::Regions(arguments) => arguments.carry_out(),
    }
    Ok(ExitCode::SUCCESS)
}

impl Simulate {
    fn carry_out(self) -> ExitCode {
        match self {
            Self { sessions: true, campaign, .. } => campaign.carry_out(&Sessions),
            Self { sequenced: true, campaign, .. } => campaign.carry_out(&Layout::Sequenced),
            Self { two_locks: true, campaign, .. } => campaign.carry_out(&Layout::TwoLocks),
            Self { three_locks: true, campaign, .. } => campaign.carry_out(&Layout::ThreeLocks),
            Self { campaign, .. } => campaign.carry_out(&Layout::OneObject),
        }
    }
}
