//! A program that simulates elections, or replays one seed.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use leaderelection_proofs::simulation::{Campaign, Layout, run};

/// Simulates elections with many faults, and checks the promises of the library.
///
/// Ends with status 0 if every promise was kept. If a promise was broken, prints the history and, as the last
/// line, `violated: <property> seed: <seed>`, and ends with status 1.
#[derive(Debug, Parser)]
struct Arguments {
    /// Simulate a lock with one object per write, in a store that can only create
    #[arg(long)]
    sequenced: bool,
    /// Simulate a move from one lock to another
    #[arg(long, conflicts_with = "sequenced")]
    two_locks: bool,
    /// The number of hours to simulate
    #[arg(long, default_value_t = 2000.0)]
    hours: f64,
    /// The longest duration, in seconds
    #[arg(long)]
    seconds: Option<f64>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Leave out the seeds whose printed conditions do not have this text, such as `trouble: Much`
    #[arg(long)]
    condition: Vec<String>,
    /// The number of threads [default: one per core]
    #[arg(long)]
    threads: Option<std::num::NonZeroUsize>,
    /// Replay this seed only, and print its history
    #[arg(long)]
    seed: Option<u64>,
    /// The number of events of the history to print
    #[arg(long, default_value_t = 400)]
    lines: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let layout = match (arguments.sequenced, arguments.two_locks) {
        (true, _) => Layout::Sequenced,
        (false, true) => Layout::TwoLocks,
        (false, false) => Layout::OneObject,
    };
    let failed = match arguments.seed {
        Some(seed) => {
            let run = run(layout, seed, Some(arguments.lines));
            println!("{}", run.story);
            run.violation.map(|violation| {
                println!("{violation}");
                (violation.property, seed)
            })
        }
        None => {
            let campaign = Campaign {
                layout,
                simulated: Duration::from_secs_f64(arguments.hours * 3600.0),
                time_limit: arguments.seconds.map_or(Duration::MAX, Duration::from_secs_f64),
                first_seed: arguments.first_seed,
                conditions: &arguments.condition,
                threads: arguments.threads,
            };
            let outcome = campaign.run();
            println!("{outcome}");
            outcome.failed.and_then(|run| Some((run.violation?.property, run.seed)))
        }
    };
    match failed {
        None => ExitCode::SUCCESS,
        Some((property, seed)) => {
            println!("violated: {property} seed: {seed}");
            ExitCode::FAILURE
        }
    }
}
