//! One compactor at a time for a table that is written with `object_store`.
//!
//! ```console
//! $ cargo run -p leaderelection-compactor-example --features object-store
//! $ cargo run -p leaderelection-compactor-example --features aws -- --bucket my-bucket --folder table
//! ```
//!
//! Four writers add lines to a table. Two candidates compete for its compaction, with the store that the table is
//! in. The first compactor is held up between its merge and its commit, until the second one leads. The manifest then
//! refuses the first compactor's commit, and every line is in the table once.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use leaderelection::fence::FencedError;
use leaderelection::{
    DefaultLeaderElector, Elector, FencingToken, LeaderCallbacks, LeaderElectionConfig, LeaderHandle,
};
use leaderelection_backends::object_store::{ObjectStoreAdapter, ObjectStoreLock};
use leaderelection_compactor_example::table::Table;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use tokio::task::JoinSet;

const WRITERS: usize = 4;
const BATCHES: usize = 5;

#[derive(Parser)]
struct Args {
    /// A bucket of Amazon S3, with credentials and region in the environment. Default: the memory of this process.
    #[cfg(feature = "aws")]
    #[arg(long)]
    bucket: Option<String>,
    /// The folder for the table. It has to be empty.
    #[arg(long, default_value = "table")]
    folder: String,
}

impl Args {
    /// Without the client's own retries: the elector repeats what has to be repeated, and knows its deadline.
    #[cfg(feature = "aws")]
    fn store(&self) -> anyhow::Result<Arc<dyn ObjectStore>> {
        use object_store::RetryConfig;
        use object_store::aws::AmazonS3Builder;

        let Some(bucket) = &self.bucket else { return Ok(Arc::new(InMemory::new())) };
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        Ok(Arc::new(AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build()?))
    }

    #[cfg(not(feature = "aws"))]
    fn store(&self) -> anyhow::Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(InMemory::new()))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let (store, folder) = (args.store()?, Path::parse(&args.folder)?);
    let table = Table::new(Arc::clone(&store), folder.clone());

    let first = candidate(&store, &folder, "first")?;
    let leading = first.clone().elected().await?;
    let token = leading.fencing_token();
    println!("first compacts with token {token}");
    table.claim(token).await?;
    write(&table, 0).await?;
    compact(&table, token).await?;

    // The compactor has merged, and is then held up: a long garbage collection, a stalled disk, a suspended machine.
    write(&table, 1).await?;
    let held_up = table.prepare(token).await?.context("lines were added")?;

    let mut second = candidate(&store, &folder, "second")?;
    first.transfer_to("second")?;
    let newer = second.elected().await?.fencing_token();
    println!("second compacts with token {newer}");
    table.claim(newer).await?;

    let Err(error) = table.commit(token, &held_up).await else { bail!("a compactor of the past has committed") };
    let stale = error.downcast_ref::<FencedError>().and_then(FencedError::stale).map(|stale| stale.highest);
    let Some(highest) = stale else { return Err(error) };
    println!("first's commit is refused: {highest} has been seen");

    compact(&table, newer).await?;
    write(&table, 2).await?;
    let lines = table.read().await?;
    let mut expected: Vec<_> = (0..3).flat_map(lines_of).collect();
    expected.sort_unstable();
    ensure!(lines == expected, "the table has {} lines and not each of {} once", lines.len(), expected.len());
    println!("the table has {} lines, each of them once", lines.len());
    Ok(())
}

/// Campaigns on a task of its own until the program ends.
fn candidate(store: &Arc<dyn ObjectStore>, folder: &Path, identity: &str) -> anyhow::Result<LeaderHandle> {
    let adapter = ObjectStoreAdapter::new(Arc::clone(store));
    let lock = ObjectStoreLock::new(adapter, folder.clone().join("compactor"), identity);
    let callbacks = LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
    let config = LeaderElectionConfig::builder(lock, callbacks).retry_period(Duration::from_millis(500)).build()?;
    let (handle, _campaign) = DefaultLeaderElector::new(config).spawn(pending());
    Ok(handle)
}

async fn compact(table: &Table, token: FencingToken) -> anyhow::Result<()> {
    match table.prepare(token).await? {
        Some(prepared) => table.commit(token, &prepared).await,
        None => Ok(()),
    }
}

/// Lets all writers add their batches at the same time.
async fn write(table: &Table, part: usize) -> anyhow::Result<()> {
    let mut writers = JoinSet::new();
    let lines = lines_of(part);
    for batch in lines.chunks(lines.len() / (WRITERS * BATCHES)) {
        let (table, batch) = (table.clone(), batch.to_vec());
        writers.spawn(async move { table.add(&batch).await });
    }
    while let Some(written) = writers.join_next().await {
        written??;
    }
    Ok(())
}

fn lines_of(part: usize) -> Vec<String> {
    (0..WRITERS * BATCHES * 5).map(|line| format!("part {part}, line {line:03}")).collect()
}
