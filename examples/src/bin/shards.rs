//! A hundred elections in one process, over one client of the store, and spread over several processes.
//!
//! ```console
//! $ cargo run -p leaderelection-examples --bin shards -- file:///var/tmp/shards --member a --members a,b,c
//! $ cargo run -p leaderelection-examples --bin shards -- file:///var/tmp/shards --member b --members a,b,c
//! ```
//!
//! Every shard has an owner among the members. The first member leads all shards. An owner that joins later
//! asks for its shards and gets them. The shards of a dead member go to the others.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use clap::Parser;
use leaderelection::admin::{AdminError, request_transfer};
use leaderelection::{
    ConditionalStore, DefaultLeaderElector, LeaderCallbacks, LeaderHandle, ObjectLock, ObjectStoreBasedLock,
};
use leaderelection_backends::url::Location;
use leaderelection_examples::timing::Timing;
use leaderelection_examples::{logs, shutdown};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Leads its share of many shards.
#[derive(Clone, Debug, Parser)]
struct Args {
    /// The common prefix of the shards' locks, such as file:///var/tmp/shards or s3://bucket/shards.
    locks: Location,
    /// The name of this process among the members.
    #[arg(long)]
    member: String,
    /// All members.
    #[arg(long, value_delimiter = ',', required = true)]
    members: Vec<String>,
    /// The number of shards.
    #[arg(long, default_value_t = 100)]
    shards: usize,
    #[command(flatten)]
    timing: Timing,
}

impl Args {
    /// Returns `true` if this member has the highest hash for the shard: adding or removing a member moves no
    /// shard of the other members.
    fn is_owner(&self, shard: usize) -> bool {
        let weight = |member: &&String| {
            let mut hasher = DefaultHasher::new();
            (shard, member).hash(&mut hasher);
            hasher.finish()
        };
        self.members.iter().max_by_key(weight) == Some(&self.member)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Arc::new(Args::parse());
    logs::to_stderr();
    let store = args.locks.open().await?;
    let shutdown = shutdown::on_signal()?;
    let (held, mut holding) = watch::channel(0);
    let owned = (0..args.shards).filter(|shard| args.is_owner(*shard)).count();
    println!("{} owns {owned} of {}", args.member, args.shards);

    let mut campaigns = JoinSet::new();
    for shard in 0..args.shards {
        campaigns.spawn(campaign(Arc::clone(&args), shard, store.clone(), held.clone(), shutdown.clone()));
    }
    drop(held);
    while holding.changed().await.is_ok() {
        println!("{} holds {} of {}", args.member, *holding.borrow_and_update(), args.shards);
    }
    while let Some(campaign) = campaigns.join_next().await {
        campaign??;
    }
    Ok(())
}

async fn campaign(
    args: Arc<Args>,
    shard: usize,
    store: Arc<dyn ConditionalStore>,
    held: watch::Sender<usize>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let lock = ObjectLock::new(store, format!("{}/{shard:03}", args.locks.key()), &args.member);
    let (gained, lost) = (held.clone(), held);
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |leadership| {
            gained.send_modify(|held| *held += 1);
            async move { leadership.lost().await }
        })
        .on_stop_leading(move || lost.send_modify(|held| *held -= 1));
    // A member keeps its name across a restart, so it may reclaim its own leases.
    let config = args.timing.configure(lock.clone(), callbacks)?.reclaim_own_identity(true).build()?;
    let elector = DefaultLeaderElector::new(config);
    let handle = elector.handle();
    tokio::select! {
        biased;
        end = elector.campaign(shutdown) => Ok(end?),
        () = claim(handle, lock), if args.is_owner(shard) => Ok(()),
    }
}

/// Asks another leader to hand over the shard.
async fn claim(mut handle: LeaderHandle, lock: impl ObjectStoreBasedLock) {
    while handle.changed().await.is_ok() {
        if handle.leader().is_none_or(|leader| leader == lock.identity()) {
            continue;
        }
        // After an error, another member leads the shard for now, which is harmless.
        if let Err(error) = ask(&lock).await {
            tracing::warn!(%error, "could not ask for a shard");
        }
    }
}

async fn ask(lock: &impl ObjectStoreBasedLock) -> Result<(), AdminError> {
    let Some(found) = lock.get().await? else { return Ok(()) };
    match request_transfer(lock, &found.record, lock.identity()).await {
        Ok(_) | Err(AdminError::AlreadyLeads { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
