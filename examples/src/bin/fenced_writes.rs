//! A resource that refuses stale tokens, and a zombie that is refused.
//!
//! ```console
//! $ cargo run --bin fenced_writes
//! ```
//!
//! Election cannot call back what a leader has already sent. Here a leader's write is held up on its way,
//! as a stalled disk or a retrying proxy would, until another one leads and has written. When it arrives,
//! the resource compares tokens and refuses it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use leaderelection::{
    DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, LeaderHandle, Leadership, MemoryLock, MemoryStore,
};
use leaderelection_examples::fenced_log::{AppendError, Entry, FencedLog};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = MemoryStore::new();
    let log = FencedLog::new(store.clone(), "log");

    let zombie = candidate(&store, "zombie")?;
    let first = leadership(&zombie).await?;
    log.append(&entry(&first, "zombie")).await?;
    println!("zombie leads and writes with token {}", first.fencing_token());

    // It still leads when it sends this; the write then hangs somewhere on the way.
    let (arrive, held_up) = oneshot::channel::<()>();
    let late = entry(&first, "zombie");
    let late_write = tokio::spawn({
        let log = log.clone();
        async move {
            let _ = held_up.await;
            log.append(&late).await
        }
    });

    let successor = candidate(&store, "successor")?;
    zombie.transfer_to("successor")?;
    let second = leadership(&successor).await?;
    log.append(&entry(&second, "successor")).await?;
    println!("successor leads and writes with token {}", second.fencing_token());

    arrive.send(()).ok().context("the zombie's write is gone")?;
    match late_write.await? {
        Err(AppendError::Fenced { token, newest }) => {
            println!("zombie's write arrives with token {token}, and is refused: {newest} has been seen");
        }
        Err(error) => return Err(error.into()),
        Ok(()) => bail!("the resource took a write with a stale token"),
    }
    for Entry { token, writer, .. } in log.entries().await? {
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
    .lease_duration(Duration::from_millis(1500))
    .renew_deadline(Duration::from_secs(1))
    .retry_period(Duration::from_millis(200))
    .build()?;
    let elector = DefaultLeaderElector::new(config);
    let handle = elector.handle();
    tokio::spawn(async move { elector.campaign(CancellationToken::new()).await });
    Ok(handle)
}

async fn leadership(candidate: &LeaderHandle) -> anyhow::Result<Leadership> {
    let mut changes = candidate.clone();
    loop {
        if let Some(leadership) = candidate.leadership() {
            return Ok(leadership);
        }
        changes.changed().await?;
    }
}

fn entry(leadership: &Leadership, writer: &str) -> Entry {
    Entry::new(leadership.fencing_token(), writer, "some work")
}
