//! A candidate that appends to a log while it leads: the tests start several of them, and kill and freeze them.

use std::sync::Arc;

use clap::Parser;
use leaderelection::{ObjectLock, Timings};
use leaderelection_arena::candidate::Candidate;
use leaderelection_arena::fenced_log::FencedLog;
use leaderelection_backends::url::Location;
use leaderelection_integration_tests::adapted::Adapted;

/// The number of entries, and of reports, that a leader writes in a retry period.
const RESTS: u32 = 6;

/// Competes for a lock, until SIGTERM or the end of its standard input.
#[derive(Parser)]
struct Args {
    /// The lock's URL, or its place in a store of another crate. The log is beside the lock.
    #[arg(value_parser = Place::parse)]
    lock: Place,
    /// The candidate's identity.
    identity: String,
    /// The timings, as JSON.
    #[arg(value_parser = |text: &str| serde_json::from_str::<Timings>(text))]
    timings: Timings,
}

/// The place of a lock.
#[derive(Clone)]
enum Place {
    Url(Location),
    Adapted(Adapted),
}

impl Place {
    fn parse(text: &str) -> anyhow::Result<Self> {
        Ok(if text.starts_with('{') { Self::Adapted(text.parse()?) } else { Self::Url(text.parse()?) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Args { lock: place, identity, timings } = Args::parse();
    let (store, key) = match &place {
        Place::Url(location) => (location.open().await?, location.key()),
        Place::Adapted(adapted) => (adapted.open(), adapted.key.as_str()),
    };
    let log = FencedLog::new(Arc::clone(&store), format!("{key}-log"));
    let lock = ObjectLock::new(store, key, &identity);
    Candidate { lock, log, timings, rest: timings.retry_period() / RESTS }.compete(drop).await
}
