//! A resource that refuses stale tokens, and a zombie that is refused.
//!
//! ```console
//! $ cargo run -p leaderelection-examples --bin fenced_writes
//! ```
//!
//! Losing leadership cannot undo a request that has already been sent. Here a leader's write is delayed in transit, as
//! by a stalled disk or a retrying proxy, until another candidate leads and has written. When the delayed write
//! arrives, the resource compares the tokens and refuses the write.

use std::future::pending;
use std::time::Duration;

use anyhow::{Context as _, bail};
use leaderelection::fence::{FencedError, FencedObject};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderHandle, MemoryLock, MemoryStore,
};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// The resource: a log in one object of a store.
type Log = FencedObject<MemoryStore, Vec<Entry>>;

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    token: u64,
    writer: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = MemoryStore::new();
    let log = Log::new(store.clone(), "log");

    let mut zombie = candidate(&store, "zombie")?;
    let first = zombie.elected().await?;
    append(&log, first.fencing_token().into(), "zombie").await?;
    println!("zombie leads and writes with token {}", first.fencing_token());

    // The leader still leads when it sends this write, which then hangs in transit.
    let (arrive, held_up) = oneshot::channel::<()>();
    let late_write = tokio::spawn({
        let (log, token) = (log.clone(), first.fencing_token());
        async move {
            let _ = held_up.await;
            append(&log, token.into(), "zombie").await
        }
    });

    let mut successor = candidate(&store, "successor")?;
    zombie.transfer_to("successor")?;
    let second = successor.elected().await?;
    append(&log, second.fencing_token().into(), "successor").await?;
    println!("successor leads and writes with token {}", second.fencing_token());

    arrive.send(()).ok().context("the zombie's write is gone")?;
    let Err(error) = late_write.await? else { bail!("the resource took a write with a stale token") };
    let Some(stale) = error.stale() else { return Err(error.into()) };
    println!("zombie's write arrives with token {}, and is refused: {} has been seen", stale.token, stale.highest);
    for Entry { token, writer } in log.read().await?.value.unwrap_or_default() {
        println!("log: token {token} by {writer}");
    }
    Ok(())
}

/// Campaigns on a task of its own until the program ends.
fn candidate(store: &MemoryStore, identity: &str) -> anyhow::Result<LeaderHandle> {
    let config = LeaderElectionConfig::builder(
        MemoryLock::new(store.clone(), "lock", identity),
        LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await }),
    )
    .retry_period(Duration::from_millis(200))
    .build()?;
    let (handle, _campaign) = DefaultLeaderElector::new(config).spawn(pending());
    Ok(handle)
}

async fn append(log: &Log, token: u64, writer: &str) -> Result<(), FencedError> {
    let entry = || Entry { token, writer: writer.to_owned() };
    log.update(token, |log| log.into_iter().flatten().chain([entry()]).collect()).await.map(drop)
}
