//! A candidate that appends to a log while it leads: the tests start several of them, and kill and freeze them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use leaderelection::fence::FencedError;
use leaderelection::{DefaultLeaderElector, Majority, ObjectLock, ObjectStoreBasedLock, Timings};
use leaderelection_arena::candidate::{Candidate, Log};
use leaderelection_arena::fenced_log::{Entry, FencedLog};
use leaderelection_backends::url::Location;
use leaderelection_integration_tests::history::{History, Recorded};
use leaderelection_integration_tests::place::Place;
use leaderelection_integration_tests::{address, peers};

/// The number of entries, and of reports, that a leader writes in a retry period by default.
const RESTS: u32 = 6;

/// The time in which followers learn that the lease is released.
const GRACE: Duration = Duration::from_secs(1);

/// Competes for a lock, until SIGTERM or the end of its standard input.
#[derive(Parser)]
struct Args {
    /// The lock's URL, or its place in a store of another crate.
    lock: Place,
    /// The candidate's identity.
    identity: String,
    /// The timings, as JSON.
    #[arg(value_parser = |text: &str| serde_json::from_str::<Timings>(text))]
    timings: Timings,
    /// A further lock, if the lock is made of several.
    #[arg(long)]
    part: Vec<Place>,
    /// The key by which the contenders get messages from their leader. Without a key, they only read the lock.
    #[arg(long)]
    peer_key: Option<String>,
    /// The URL of the log. Without it, the log is beside the lock.
    #[arg(long)]
    log: Option<Location>,
    /// The file to which all calls are added for a judge.
    #[arg(long)]
    history: Option<PathBuf>,
    /// The pause in milliseconds between two entries, and between two reports.
    #[arg(long)]
    rest: Option<u64>,
}

/// The log, whose calls are events of a history.
#[derive(Clone)]
struct Noted {
    log: FencedLog,
    history: Option<Arc<History>>,
}

impl Log for Noted {
    async fn append(&self, entry: &Entry) -> Result<(), FencedError> {
        match &self.history {
            None => self.log.append(entry).await,
            Some(history) => history.work("log", entry.token, self.log.append(entry)).await,
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Args { lock: place, identity, timings, part, peer_key, log, history, rest } = Args::parse();
    let history = history.map(|file| History::of(std::process::id(), &file)).transpose()?;
    let log = match log {
        None => {
            let (store, key) = place.open().await?;
            FencedLog::new(store, format!("{key}-log"))
        }
        Some(log) => FencedLog::new(log.open().await?, log.key()),
    };
    let log = Noted { log, history: history.clone() };
    let mut parts = Vec::new();
    for place in [&place].into_iter().chain(&part) {
        let (store, key) = place.open().await?;
        let store = match &history {
            None => store,
            Some(history) => Recorded::new(store, key, Arc::clone(history)),
        };
        parts.push(ObjectLock::new(store, key, &identity));
    }
    let lock: Arc<dyn ObjectStoreBasedLock> = match &parts[..] {
        [only] => Arc::new(only.clone()),
        _ => Arc::new(Majority::of(parts)?),
    };
    let rest = rest.map_or(timings.retry_period() / RESTS, Duration::from_millis);
    let candidate = Candidate { lock, log, timings, rest };
    let peers = peer_key.as_deref().map(peers).transpose()?;
    let address = peers.as_ref().and_then(address);
    let attach = |elector: &DefaultLeaderElector| Ok(peers.as_ref().map(|peers| peers.attach(elector)).transpose()?);
    let _attached = candidate.compete(address, attach).await?;
    if let Some(peers) = peers {
        peers.finish(GRACE).await;
    }
    Ok(())
}
