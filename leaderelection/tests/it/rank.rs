//! The rank of candidates (rule 23).

use std::future::pending;
use std::time::Duration;

use leaderelection::lock::HolderRank;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderElectionConfigBuilder, LeaderElectionRecord, LeaderHandle, MemoryStore,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::{Journal, LEASE, RETRY, TestLock, builder, plant, record, stored};

const SECOND: Duration = Duration::from_secs(1);

/// The longest delay of a takeover by the spread of takeovers.
const SPREAD: Duration = Duration::from_millis(100);

/// A process that campaigns.
pub(crate) struct Node {
    pub(crate) lock: TestLock,
    pub(crate) handle: LeaderHandle,
    campaign: JoinHandle<()>,
}

impl Node {
    pub(crate) fn start(store: &MemoryStore, identity: &str, rank: u8) -> Self {
        Self::start_with(store, identity, |builder| builder.rank(rank))
    }

    pub(crate) fn start_with(
        store: &MemoryStore,
        identity: &str,
        set: impl FnOnce(LeaderElectionConfigBuilder) -> LeaderElectionConfigBuilder,
    ) -> Self {
        let lock = TestLock::new(store, identity);
        let config = set(builder(lock.clone(), Journal::default().callbacks()));
        let elector = DefaultLeaderElector::new(config.build().unwrap());
        let handle = elector.handle();
        let campaign = tokio::spawn(async move { elector.campaign(pending()).await.unwrap() });
        Self { lock, handle, campaign }
    }

    pub(crate) async fn leads(&mut self) -> Duration {
        let since = Instant::now();
        while !self.handle.is_leader() {
            self.handle.changed().await.unwrap();
        }
        since.elapsed()
    }

    pub(crate) fn crash(self) {
        self.campaign.abort();
    }
}

fn parsed(json: &str) -> LeaderElectionRecord {
    LeaderElectionRecord::from_json(json.as_bytes(), LEASE * 10).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_rank_waits_its_retry_periods_longer_for_an_expired_lease() {
    for rank in [0, 1, 5] {
        let store = MemoryStore::new();
        plant(&store, &record("dead", LEASE, 3)).await;
        let took = Node::start(&store, "a", rank).leads().await;
        let expected = LEASE + RETRY * u32::from(rank);
        assert!((expected..=expected + SPREAD).contains(&took), "rank {rank}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rank_waits_for_a_free_lease_and_for_a_lock_that_nobody_has_created() {
    for released in [true, false] {
        let store = MemoryStore::new();
        if released {
            plant(&store, &record("", SECOND, 3)).await;
        }
        assert_eq!(Node::start(&store, "a", 3).leads().await, RETRY * 3);
    }
}

#[tokio::test(start_paused = true)]
async fn the_candidate_that_is_to_lead_next_waits_for_no_rank() {
    let store = MemoryStore::new();
    let mut released = record("", SECOND, 3);
    released.preferred_holder = Some("a".to_owned());
    plant(&store, &released).await;
    assert_eq!(Node::start(&store, "a", 9).leads().await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_rank_is_in_the_record_of_its_term_and_the_best_rank_is_not_written() {
    for (rank, expected) in [(0, None), (2, HolderRank::new(2, 1))] {
        let store = MemoryStore::new();
        Node::start(&store, "a", rank).leads().await;
        sleep(RETRY * 2).await;
        let record = stored(&store).await.record;
        assert_eq!((record.rank.clone(), record.leader_rank()), (expected, rank));
        let json = String::from_utf8(record.to_json()).unwrap();
        assert_eq!(json.contains(r#""rank":{"rank":2,"term":1}"#), rank == 2, "{json}");
        assert_eq!(parsed(&json), record);
    }
}

#[test]
fn a_rank_of_a_former_term_or_of_another_type_does_not_count() {
    let with = |rank: &str| {
        parsed(&format!(r#"{{"holderIdentity":"a","leaseDurationSeconds":15,"leaderTransitions":7,"rank":{rank}}}"#))
    };
    assert_eq!(with(r#"{"rank":4,"term":7}"#).leader_rank(), 4);
    assert_eq!(with(r#"{"rank":4,"term":6}"#).leader_rank(), 0);
    for other in ["3", r#"{"rank":-1,"term":7}"#, r#""major""#] {
        let mut record = with(other);
        assert_eq!(record.leader_rank(), 0);
        assert!(String::from_utf8(record.to_json()).unwrap().contains(other), "kept: {other}");
        record.rank = HolderRank::new(1, 7);
        assert_eq!(parsed(&String::from_utf8(record.to_json()).unwrap()).leader_rank(), 1);
    }
}
