//! The cost of a lock that a session holds.

use std::ops::Range;

use allocation_counter::measure;
use leaderelection::clock::TokioClock;
use leaderelection::{ConditionalStore, LeaderCallbacks, MemoryStore, Session};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::leader::{RETRY, pass, runtime};

/// A session that runs for ever.
fn one_session(runtime: &Runtime, store: &MemoryStore) -> Session {
    let session = Session::builder(store.clone(), "shards", "node-1").clock(TokioClock::new()).build().unwrap();
    let running = session.clone();
    runtime.spawn(async move { running.run(CancellationToken::new()).await });
    session
}

/// Campaigns for ever for one lock of a session, with work that does nothing but wait for the end of its term.
fn campaign_through(session: &Session, lock: usize) -> impl Future<Output = ()> + Send + 'static {
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(|leadership| async move { leadership.lost().await })
        .on_stop_leading(|| {});
    let elector = session.elector(format!("shard-{lock}"), callbacks).unwrap();
    async move { elector.campaign(CancellationToken::new()).await.unwrap() }
}

/// Bytes that one more lock of a session holds between two renewals: the elector, its task, the task of its work, and
/// the object in the store.
pub(crate) fn bytes_per_lock_of_session(locks: usize) -> f64 {
    let (runtime, store) = (runtime(), MemoryStore::new());
    let session = one_session(&runtime, &store);
    let start = |range: Range<usize>| {
        range.for_each(|lock| drop(runtime.spawn(campaign_through(&session, lock))));
        pass(&runtime, RETRY * 20);
    };
    start(0..locks);
    let info = measure(|| start(locks..2 * locks));
    let held = runtime.block_on(store.list("shards/locks/")).unwrap().len();
    assert_eq!(held, 2 * locks, "every lock is led");
    info.bytes_current as f64 / locks as f64
}

/// Allocations of a session per renewal, while it leads `locks` locks.
pub(crate) fn allocations_per_session_renewal(locks: usize, renewals: u32) -> f64 {
    let (runtime, store) = (runtime(), MemoryStore::new());
    let session = one_session(&runtime, &store);
    (0..locks).for_each(|lock| drop(runtime.spawn(campaign_through(&session, lock))));
    pass(&runtime, RETRY * 20);
    measure(|| pass(&runtime, RETRY * renewals)).count_total as f64 / f64::from(renewals)
}
