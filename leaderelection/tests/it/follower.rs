//! The pause between a follower's reads while the leader renews (rule 20).

use std::time::Duration;

use leaderelection::{DefaultLeaderElector, Elector, LeaderHandle, MemoryStore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::support::{Journal, LEASE, Op, RETRY, TestLock, builder, elector, plant, record, spawn_run};

const SECOND: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_secs(8);

/// The longest pause between two polls without the interval.
const POLL: Duration = Duration::from_millis(4_400);

/// The longest delay of a takeover by the spread of takeovers.
const SPREAD: Duration = Duration::from_millis(100);

/// A leader `a`, and a candidate `b` with the interval.
struct Pair {
    store: MemoryStore,
    leader: JoinHandle<leaderelection::RunOutcome>,
    cancel_leader: CancellationToken,
    follower: TestLock,
    handle: LeaderHandle,
}

impl Pair {
    async fn start() -> Self {
        let (store, journal) = (MemoryStore::new(), Journal::default());
        let leader = builder(TestLock::new(&store, "a"), journal.callbacks()).release_on_cancel(true);
        let (cancel_leader, leader) = spawn_run(DefaultLeaderElector::new(leader.build().unwrap()));
        sleep(RETRY / 2).await;
        let follower = TestLock::new(&store, "b");
        let config = builder(follower.clone(), journal.callbacks()).follower_interval(INTERVAL);
        let candidate = DefaultLeaderElector::new(config.build().unwrap());
        let handle = candidate.handle();
        drop(spawn_run(candidate));
        Self { store, leader, cancel_leader, follower, handle }
    }

    async fn next_leader(&mut self) -> Duration {
        let since = Instant::now();
        while !self.handle.is_leader() {
            self.handle.changed().await.unwrap();
        }
        since.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_reads_once_per_interval_and_never_writes() {
    let pair = Pair::start().await;
    sleep(SECOND * 60).await;
    pair.follower.take_ops();
    sleep(SECOND * 3600).await;
    let ops = pair.follower.take_ops();
    assert!(ops.iter().all(|op| *op == Op::Get), "{ops:?}");
    // Every 8 to 10.4 s, 9.2 s on average, and never so late that the lease seems to have expired.
    assert!((346..=450).contains(&ops.len()), "{} reads", ops.len());
    let other = elector(TestLock::new(&pair.store, "c"), Journal::default().callbacks());
    drop((other, pair.cancel_leader));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_observed_lease_is_met_on_time() {
    for crash_after in [30, 33, 36, 39].map(|seconds| SECOND * seconds) {
        let mut pair = Pair::start().await;
        sleep(crash_after).await;
        pair.leader.abort();
        let took = pair.next_leader().await;
        let observed_late = INTERVAL + RETRY.mul_f64(1.2);
        assert!(took <= LEASE + observed_late + SPREAD, "{took:?} after {crash_after:?}");
        assert!(took >= LEASE - RETRY, "{took:?} after {crash_after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_sees_no_renewal_reads_at_the_pace_of_the_retry_period() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "b");
    plant(&store, &record("a", LEASE * 8, 1)).await;
    let config = builder(lock.clone(), Journal::default().callbacks()).follower_interval(INTERVAL);
    drop(spawn_run(DefaultLeaderElector::new(config.build().unwrap())));
    let mut renewal = record("a", LEASE * 8, 1);
    for number in 0..4 {
        sleep(INTERVAL + POLL).await;
        renewal.write_id = Some(number.to_string());
        plant(&store, &renewal).await;
    }
    // The next read shows the last renewal, and the read after that shows that no other one has come.
    sleep((INTERVAL + POLL) * 2).await;
    lock.take_ops();
    sleep(SECOND * 22).await;
    let ops = lock.take_ops();
    assert!((5..=11).contains(&ops.len()), "{ops:?}");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_seen_within_the_interval() {
    let mut pair = Pair::start().await;
    sleep(SECOND * 40).await;
    pair.cancel_leader.cancel();
    let took = pair.next_leader().await;
    assert!(took <= INTERVAL + RETRY.mul_f64(1.2), "{took:?}");
}
