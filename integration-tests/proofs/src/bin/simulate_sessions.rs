//! A program that simulates processes that lead locks through sessions, or replays one seed.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use leaderelection_proofs::sessions::simulation::{Campaign, run};

/// Simulates sessions with many faults, and checks the promises of the library.
#[derive(Debug, Parser)]
struct Arguments {
    /// The number of hours to simulate
    #[arg(long, default_value_t = 500.0)]
    hours: f64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
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
    let (seed, violation) = match arguments.seed {
        Some(seed) => {
            let run = run(seed, arguments.lines);
            println!("{}", run.story);
            (seed, run.violation)
        }
        None => {
            let simulated = Duration::from_secs_f64(arguments.hours * 3600.0);
            let Arguments { first_seed, threads, .. } = arguments;
            let outcome = Campaign { simulated, first_seed, threads }.run();
            println!("{outcome}");
            outcome.failed.map_or((0, None), |run| (run.seed, run.violation))
        }
    };
    match violation {
        None => ExitCode::SUCCESS,
        Some((property, what)) => {
            println!("{what}\nviolated: {property:?} seed: {seed}");
            ExitCode::FAILURE
        }
    }
}
