//! Simulates elections for as long as asked, or replays one seed.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use leaderelection_protocol_tests::simulation::{Campaign, run};

/// Simulates elections in which nearly everything goes wrong, and checks what the library promises.
///
/// Ends with status 0 if every promise was kept. If one was broken, prints the history and, as the last
/// line, `violated: <property> seed: <seed>`, and ends with status 1.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many hours to simulate
    #[arg(long, default_value_t = 2000.0)]
    hours: f64,
    /// How many seconds to take at most
    #[arg(long)]
    seconds: Option<f64>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// How many threads to use [default: one per core]
    #[arg(long)]
    threads: Option<std::num::NonZeroUsize>,
    /// Replay this seed only, and tell its history
    #[arg(long)]
    seed: Option<u64>,
    /// How many events of the history to tell
    #[arg(long, default_value_t = 400)]
    lines: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let failed = match arguments.seed {
        Some(seed) => {
            let run = run(seed, Some(arguments.lines));
            println!("{}", run.story);
            run.violation.map(|violation| {
                println!("{violation}");
                (violation.property, seed)
            })
        }
        None => {
            let campaign = Campaign {
                simulated: Duration::from_secs_f64(arguments.hours * 3600.0),
                time_limit: arguments.seconds.map_or(Duration::MAX, Duration::from_secs_f64),
                first_seed: arguments.first_seed,
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
