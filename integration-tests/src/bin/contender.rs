//! A candidate that appends to a log while it leads: the tests start several of them, and kill and freeze them.

use std::sync::Arc;

use clap::Parser;
use leaderelection::Timings;
use leaderelection_arena::candidate::Candidate;
use leaderelection_arena::fenced_log::FencedLog;
use leaderelection_backends::url::Location;

/// The number of entries, and of reports, that a leader writes in a retry period.
const RESTS: u32 = 6;

/// Competes for a lock, until SIGTERM or the end of its standard input.
#[derive(Parser)]
struct Args {
    /// The lock's URL. The log is beside the lock.
    lock: Location,
    /// The candidate's identity.
    identity: String,
    /// The timings, as JSON.
    #[arg(value_parser = |text: &str| serde_json::from_str::<Timings>(text))]
    timings: Timings,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Args { lock: location, identity, timings } = Args::parse();
    let lock = location.lock(&identity).await?;
    let log = FencedLog::new(Arc::clone(lock.store()), format!("{}-log", location.key()));
    Candidate { lock, log, timings, rest: timings.retry_period() / RESTS }.compete(drop).await
}
