//! A job that must not run twice at a time: the leader runs the job, and the others wait.
//!
//! ```console
//! $ cargo run -p leaderelection-examples --bin job -- file:///var/tmp/nightly
//! ```
//!
//! Start the program twice: the second process runs its job when the first has finished.

use std::time::Duration;

use clap::Parser;
use leaderelection::timings::parse_duration;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderElectionConfig, Leadership, Timings, shutdown_signal, unique_identity,
};
use leaderelection_backends::url::Location;

/// Runs a job that must not run twice at a time.
#[derive(Debug, Parser)]
struct Args {
    /// The lock, such as file:///var/tmp/nightly or s3://bucket/nightly.
    lock: Location,
    /// The number of steps of the job.
    #[arg(long, default_value_t = 5)]
    steps: u32,
    /// The duration of a step.
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = parse_duration)]
    step: Duration,
    #[command(flatten)]
    timings: Timings,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { lock, steps, step, timings } = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let lock = lock.lock(unique_identity()).await?;
    let elector = DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).timings(timings).build()?);

    let job = move |leadership: Leadership| async move {
        println!("begun with fencing token {}", leadership.fencing_token());
        let mut done = 0;
        // Every write of a step should carry the fencing token.
        while done < steps && leadership.is_valid() {
            match leadership.run_until_lost(tokio::time::sleep(step)).await {
                Some(()) => done += 1,
                None => break,
            }
        }
        done
    };
    // The result is an error if leadership was lost: another process then runs the job.
    let done = elector.run_while_leading(shutdown_signal(), job).await?;
    println!("done {done} of {steps} steps");
    anyhow::ensure!(done == steps, "stopped after {done} of {steps} steps; start it again");
    Ok(())
}
