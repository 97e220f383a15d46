//! A leader on one thread and in simulated time: time jumps from one timer to the next, so that hours of renewals take
//! as long as the work that they are.

use std::future::pending;
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::implement::ConditionalStore;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore, ObjectStoreBasedLock,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

pub(crate) const KEY: &str = "locks/scheduler";
pub(crate) const RETRY: Duration = Duration::from_secs(2);

/// A leader between two renewals, past the first ones, which set up what the later ones reuse.
pub(crate) fn one_leader() -> (Runtime, MemoryStore) {
    one_leader_by(|lock| lock)
}

/// The same leader as in [`one_leader`], with a lock of another kind over the store's lock.
pub(crate) fn one_leader_by<L: ObjectStoreBasedLock>(wrap: impl FnOnce(MemoryLock) -> L) -> (Runtime, MemoryStore) {
    let (runtime, store) = (runtime(), MemoryStore::new());
    runtime.spawn(campaign(wrap(MemoryLock::new(store.clone(), KEY, "node-1"))));
    pass(&runtime, RETRY * 10 + RETRY / 2);
    (runtime, store)
}

/// Campaigns forever, with work that does nothing but wait for the end of its term.
pub(crate) fn campaign(lock: impl ObjectStoreBasedLock) -> impl Future<Output = ()> + Send + 'static {
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(|leadership| async move { leadership.lost().await })
        .on_stop_leading(|| {});
    let config = LeaderElectionConfig::builder(lock, callbacks).clock(TokioClock::new()).build().unwrap();
    let elector = DefaultLeaderElector::new(config);
    async move {
        elector.campaign(pending()).await.unwrap();
    }
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Lets time pass.
pub(crate) fn pass(runtime: &Runtime, duration: Duration) {
    runtime.block_on(async { sleep(duration).await });
}

/// The number of writes that the store has seen. The store numbers its writes, and the number of the last write is
/// the version.
pub(crate) fn writes(runtime: &Runtime, store: &MemoryStore) -> u32 {
    runtime.block_on(store.get(KEY)).unwrap().unwrap().version.as_str().parse().unwrap()
}
