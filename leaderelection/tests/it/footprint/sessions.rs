//! The cost of a lock that a session holds.

use std::future::pending;
use std::ops::Range;

use allocation_counter::measure;
use leaderelection::clock::TokioClock;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt};
use leaderelection::{Elector, LeaderCallbacks, MemoryStore, Session};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::leader::{RETRY, pass, runtime};

/// A session that runs forever.
fn one_session(runtime: &Runtime, store: &MemoryStore) -> Session {
    let session = Session::builder(store.clone(), "shards", "node-1").clock(TokioClock::new()).build().unwrap();
    let running = session.clone();
    runtime.spawn(async move { running.run(pending()).await });
    session
}

/// Campaigns forever for one lock of a session, with work that does nothing but wait for the end of its term.
fn campaign_through(
    session: &Session,
    lock: usize,
    shutdown: CancellationToken,
) -> impl Future<Output = ()> + Send + 'static {
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(|leadership| async move { leadership.lost().await })
        .on_stop_leading(|| {});
    let elector = session.elector(format!("shard-{lock}"), callbacks).unwrap();
    async move { elector.campaign(shutdown.cancelled_owned()).await.unwrap() }
}

/// Bytes that one more lock of a session holds between two renewals.
pub(crate) struct LockBytes {
    /// The elector, its task, the task of its work, and what the session knows.
    pub(crate) in_process: f64,
    /// The object, which only a [`MemoryStore`] keeps in the process.
    pub(crate) in_store: f64,
}

/// Measures locks whose electors have one token for the shutdown of the program.
pub(crate) fn bytes_per_lock_of_session(locks: usize) -> LockBytes {
    let (runtime, store) = (runtime(), MemoryStore::new());
    let session = one_session(&runtime, &store);
    let shutdown = CancellationToken::new();
    let start = |range: Range<usize>| {
        // Tasks that are spawned inside the runtime all begin before the session looks for their locks.
        runtime.block_on(async {
            range.for_each(|lock| drop(tokio::spawn(campaign_through(&session, lock, shutdown.clone()))));
        });
        pass(&runtime, RETRY * 20);
    };
    start(0..locks);
    let started = measure(|| start(locks..2 * locks));
    let held = runtime.block_on(store.list("shards/locks/")).unwrap();
    assert_eq!(held.len(), 2 * locks, "every lock is led");
    // No future here waits for anything, so the session does not run meanwhile.
    let deleted = measure(|| {
        for object in &held {
            runtime.block_on(store.delete(&object.key, object.version.as_ref())).unwrap();
        }
    });
    let in_store = -deleted.bytes_current as f64 / (2 * locks) as f64;
    LockBytes { in_process: started.bytes_current as f64 / locks as f64 - in_store, in_store }
}

/// Allocations of a session per renewal, while it leads `locks` locks.
pub(crate) fn allocations_per_session_renewal(locks: usize, renewals: u32) -> f64 {
    let (runtime, store) = (runtime(), MemoryStore::new());
    let session = one_session(&runtime, &store);
    (0..locks).for_each(|lock| drop(runtime.spawn(campaign_through(&session, lock, CancellationToken::new()))));
    pass(&runtime, RETRY * 20);
    measure(|| pass(&runtime, RETRY * renewals)).count_total as f64 / f64::from(renewals)
}
