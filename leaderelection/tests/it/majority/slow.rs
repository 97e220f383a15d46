//! A part that is always slower than the others is healthy (M10): no poll counts it as silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::LockParts;
use leaderelection::{
    LeaderElectionConfigBuilder, LeaderElectionRecord, LeaderHandle, LockError, Majority, MemoryStore,
    ObjectStoreBasedLock, StoreErrorKind,
};
use tokio::time::{Instant, sleep};

use super::{SPREAD, run};
use crate::support::{Fault, Journal, LEASE, RETRY, TestLock, builder, plant, record, stored};

/// The time by which the slow part answers later than the others.
pub(super) const SLOWNESS: Duration = Duration::from_millis(300);

/// The longest time from a release to the next term: a poll, another poll and a write.
const POLL: Duration = Duration::from_millis(4400 + 3 * 300);

/// A part with a latency of its own, which refuses what it is told to.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) lock: TestLock,
    pub(super) latency: Duration,
    pub(super) refuses_releases: Arc<AtomicBool>,
    pub(super) refuses_a_renewal: Arc<AtomicBool>,
    /// The writes that are in flight.
    pub(super) open: Arc<AtomicUsize>,
}

/// Counts a write until it is answered or dropped.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Part {
    /// A write that was sent is carried out, whether anybody waits for its answer or not.
    async fn write(&self, record: &LeaderElectionRecord, expected: Option<&Version>) -> Result<Version, LockError> {
        self.open.fetch_add(1, Relaxed);
        let _open = Open(Arc::clone(&self.open));
        let (part, record, expected) = (self.clone(), record.clone(), expected.cloned());
        tokio::spawn(async move { part.carry_out(&record, expected).await }).await.unwrap()
    }

    async fn carry_out(&self, record: &LeaderElectionRecord, expected: Option<Version>) -> Result<Version, LockError> {
        sleep(self.latency).await;
        let is_refused = match record.is_released() {
            true => self.refuses_releases.load(Relaxed),
            false => self.refuses_a_renewal.swap(false, Relaxed),
        };
        match expected {
            _ if is_refused => {
                Err(LockError::new(StoreErrorKind::Rejected, "cannot update lock", self.describe(), "refused"))
            }
            None => self.lock.create(record).await,
            Some(expected) => self.lock.update(record, &expected).await,
        }
    }
}

#[async_trait]
impl ObjectStoreBasedLock for Part {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        sleep(self.latency).await;
        self.lock.get().await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.write(record, None).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.write(record, Some(expected)).await
    }

    fn identity(&self) -> &str {
        self.lock.identity()
    }

    fn describe(&self) -> String {
        self.lock.describe()
    }
}

pub(super) fn parts(stores: &[MemoryStore; 3], identity: &str, slow: usize) -> [Part; 3] {
    [0, 1, 2].map(|part| Part {
        lock: TestLock::new(&stores[part], identity),
        latency: if part == slow { SLOWNESS } else { Duration::from_millis(1) },
        refuses_releases: Arc::default(),
        refuses_a_renewal: Arc::default(),
        open: Arc::default(),
    })
}

fn config(parts: &[Part; 3]) -> LeaderElectionConfigBuilder {
    builder(Majority::of(parts.clone()).unwrap(), Journal::default().callbacks()).release_on_cancel(true)
}

pub(super) async fn until_led(mut handle: LeaderHandle) -> Duration {
    let began = Instant::now();
    while !handle.is_leader() {
        handle.changed().await.unwrap();
    }
    began.elapsed()
}

/// Every pair of a slow part and another, which may be the same.
pub(super) fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..9).map(|pair| (pair / 3, pair % 3))
}

#[tokio::test(start_paused = true)]
async fn a_release_that_one_part_refuses_costs_no_lease() {
    for (slow, refusing) in pairs() {
        let stores = <[MemoryStore; 3]>::default();
        let ours = parts(&stores, "a", slow);
        let (leader, cancel, ended) = run(config(&ours));
        sleep(RETRY * 2).await;
        let (other, ..) = run(config(&parts(&stores, "b", slow)));
        sleep(RETRY * 6).await;
        assert!(leader.is_leader());
        ours[refusing].refuses_releases.store(true, Relaxed);
        cancel.cancel();
        ended.await.unwrap();
        let took = until_led(other).await;
        assert!(took < POLL, "{slow} is slow, {refusing} refuses: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_refused_once_is_sent_again() {
    for refusing in 0..3 {
        let stores = <[MemoryStore; 3]>::default();
        let ours = [0, 1, 2].map(|part| TestLock::new(&stores[part], "a"));
        let lock = Majority::of(ours.clone()).unwrap();
        let config = builder(lock, Journal::default().callbacks()).release_on_cancel(true);
        let (leader, cancel, ended) = run(config);
        sleep(RETRY * 2 + RETRY / 2).await;
        assert!(leader.is_leader());
        let updates = ours[refusing].ops().iter().filter(|op| **op == crate::support::Op::Update).count();
        let _part = ours[refusing].clone().with_fault(
            crate::support::Op::Update,
            updates,
            Fault::Refuse(StoreErrorKind::Rejected),
        );
        cancel.cancel();
        ended.await.unwrap();
        assert!(stored(&stores[refusing]).await.record.is_released(), "{refusing}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_died_with_one_part_blocks_nobody() {
    for (slow, held) in pairs() {
        let stores = <[MemoryStore; 3]>::default();
        let (_leader, _cancel, running) = run(config(&parts(&stores, "a", slow)));
        sleep(RETRY * 2).await;
        let theirs = parts(&stores, "b", slow);
        let (other, ..) = run(config(&theirs));
        sleep(RETRY * 6).await;
        running.abort();
        sleep(LEASE / 2).await;
        let mut half = record("x", LEASE, 1);
        half.parts = Some(LockParts::new(2, theirs.iter().map(|part| part.describe()).collect(), 1));
        plant(&stores[held], &half).await;
        let took = until_led(other).await;
        assert!(took < LEASE / 2 + POLL + SPREAD, "{slow} is slow, {held} is held: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_goes_on_while_one_part_is_released_and_another_refuses_once() {
    for slow in 0..3 {
        for (released, refusing) in pairs().filter(|(released, refusing)| released != refusing) {
            let stores = <[MemoryStore; 3]>::default();
            let ours = parts(&stores, "a", slow);
            let (leader, ..) = run(config(&ours));
            sleep(RETRY * 4).await;
            let token = leader.fencing_token();
            assert!(token.is_some());
            ours[refusing].refuses_a_renewal.store(true, Relaxed);
            plant(&stores[released], &record("", RETRY, 0)).await;
            for _ in 0..60 {
                sleep(RETRY / 4).await;
                assert_eq!(leader.fencing_token(), token, "{slow} is slow, {released} released, {refusing} refuses");
            }
        }
    }
}

/// The first poll needs two answers, and the next one begins before the third has come.
#[tokio::test(start_paused = true)]
async fn the_next_poll_waits_for_a_part_that_was_slower_than_the_others() {
    for (slow, held) in pairs().filter(|(slow, held)| slow != held) {
        let stores = <[MemoryStore; 3]>::default();
        let parts = parts(&stores, "b", slow);
        let of_parts = |holder: &str, token| {
            let mut record = record(holder, LEASE, token);
            let names = parts.iter().map(|part| part.describe()).collect();
            record.parts = Some(LockParts::new(2, names, token));
            record
        };
        for store in &stores {
            plant(store, &of_parts("a", 7)).await;
        }
        let lock = Majority::of(parts.clone()).unwrap();
        let shown = async || lock.get().await.unwrap().unwrap().record.holder_identity;
        assert_eq!(shown().await, "a");
        plant(&stores[held], &of_parts("x", 8)).await;
        let seen = lock.get().await.unwrap().unwrap();
        assert_eq!((&*seen.record.holder_identity, seen.record.leader_transitions), ("a", 7), "{slow} {held}");
    }
}

/// The retry period of a leader that renews twice while the slow part answers once.
const OFTEN: Duration = Duration::from_millis(150);

/// The part is renewed all the time, although it answers only every second or third renewal.
#[tokio::test(start_paused = true)]
async fn a_part_that_is_slower_than_the_renewals_counts_when_another_is_away() {
    for (slow, away) in pairs().filter(|(slow, away)| slow != away) {
        let stores = <[MemoryStore; 3]>::default();
        let ours = parts(&stores, "a", slow);
        let (leader, ..) = run(config(&ours).retry_period(OFTEN));
        sleep(LEASE).await;
        let token = leader.fencing_token();
        assert!(token.is_some());
        ours[slow].lock.take_ops();
        for _ in 0..LEASE.as_millis() / OFTEN.as_millis() {
            let before = stored(&stores[slow]).await;
            assert_eq!(Some(before.record.leader_transitions.into()), token, "{slow} is slow");
            sleep(SLOWNESS * 2).await;
            let after = stored(&stores[slow]).await;
            assert_ne!(before.version, after.version, "{slow} is slow, and not renewed");
            assert!(ours[slow].open.load(Relaxed) <= 1);
        }
        assert!(!ours[slow].lock.take_ops().is_empty());
        ours[away].lock.set_outage(Some(Fault::Hang));
        for _ in 0..LEASE.as_millis() * 2 / OFTEN.as_millis() {
            sleep(OFTEN).await;
            assert_eq!(leader.fencing_token(), token, "{slow} is slow, {away} is away");
        }
    }
}

/// The release begins at some moment of the requests to the slow part.
#[tokio::test(start_paused = true)]
async fn a_slow_part_is_released_while_another_refuses() {
    for ((slow, refusing), moment) in pairs().flat_map(|pair| (0..3).map(move |moment| (pair, moment))) {
        let stores = <[MemoryStore; 3]>::default();
        let ours = parts(&stores, "a", slow);
        let (leader, cancel, ended) = run(config(&ours).retry_period(OFTEN));
        sleep(RETRY).await;
        let (other, ..) = run(config(&parts(&stores, "b", slow)).retry_period(OFTEN));
        sleep(LEASE + SLOWNESS * 2 * moment / 3).await;
        assert!(leader.is_leader());
        ours[refusing].refuses_releases.store(true, Relaxed);
        let began = Instant::now();
        cancel.cancel();
        ended.await.unwrap();
        until_led(other).await;
        let took = began.elapsed();
        assert!(took < POLL, "{slow} is slow, {refusing} refuses, {moment}: {took:?}");
    }
}

/// A part whose request hangs is asked anew after a quarter of a lease.
#[tokio::test(start_paused = true)]
async fn a_part_that_has_hung_is_renewed_again() {
    for hung in 0..3 {
        let stores = <[MemoryStore; 3]>::default();
        let ours = parts(&stores, "a", hung);
        let (leader, ..) = run(config(&ours).retry_period(OFTEN));
        sleep(LEASE).await;
        let token = leader.fencing_token();
        ours[hung].lock.set_outage(Some(Fault::Hang));
        sleep(LEASE * 3).await;
        let before = stored(&stores[hung]).await;
        ours[hung].lock.set_outage(None);
        sleep(LEASE / 4 + SLOWNESS * 4).await;
        assert_eq!(leader.fencing_token(), token);
        assert_ne!(stored(&stores[hung]).await.version, before.version, "{hung}");
    }
}
