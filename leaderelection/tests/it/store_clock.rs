//! The age of a lease by the store's clock (rule 19).

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::{Elector, MemoryStore, ObjectLock, StoreError};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::support::{Journal, LEASE, Op, RETRY, TestLock, builder, elector, logged, plant, record, spawn_run};

const SECOND: Duration = Duration::from_secs(1);
const SLACK: Duration = Duration::from_secs(2);

/// The longest delay of a takeover by the spread of takeovers.
const SPREAD: Duration = Duration::from_millis(100);

/// Plants the record of a dead leader, and returns the time that a candidate takes to lead that starts `age` later, and
/// its requests.
async fn takeover(age: Duration, slack: Option<Duration>) -> (Duration, Vec<Op>) {
    let store = MemoryStore::new();
    plant(&store, &record("dead", LEASE, 3)).await;
    sleep(age).await;
    let lock = TestLock::new(&store, "a");
    let config = builder(lock.clone(), Journal::default().callbacks());
    let config = slack.into_iter().fold(config, |config, slack| config.trust_store_clock(slack));
    let elector = leaderelection::DefaultLeaderElector::new(config.build().unwrap());
    let mut handle = elector.handle();
    let began = Instant::now();
    let (_cancel, _running) = spawn_run(elector);
    while !handle.is_leader() {
        handle.changed().await.unwrap();
    }
    (began.elapsed(), lock.ops())
}

#[tokio::test(start_paused = true)]
async fn a_candidate_beside_the_record_of_a_dead_leader_leads_at_its_first_read() {
    let (took, ops) = takeover(LEASE + SLACK + SPREAD, Some(SLACK)).await;
    assert_eq!((took, ops), (Duration::ZERO, vec![Op::Get, Op::Update]));
}

#[tokio::test(start_paused = true)]
async fn without_the_setting_a_candidate_waits_for_a_lease_whatever_the_age() {
    let (took, _) = takeover(LEASE * 10, None).await;
    assert!((LEASE..=LEASE + SPREAD).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_age_counts_once_and_less_the_slack() {
    for age in [0, 1, 2, 3, 9, 14, 16].map(|age| SECOND * age) {
        let (took, ops) = takeover(age, Some(SLACK)).await;
        let left = LEASE - age.saturating_sub(SLACK);
        assert!((left..=left + SPREAD).contains(&took), "at an age of {age:?}: {took:?}");
        // The reads of the unchanged version count for nothing, or the wait would be shorter.
        assert!(left < RETRY * 3 || ops.len() > 3, "{ops:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_and_its_read_are_waited_for_once() {
    let store = MemoryStore::new();
    let (_cancel, leader) = spawn_run(elector(TestLock::new(&store, "a"), Journal::default().callbacks()));
    sleep(RETRY / 2).await;
    let config = builder(TestLock::new(&store, "b"), Journal::default().callbacks());
    let candidate = leaderelection::DefaultLeaderElector::new(config.trust_store_clock(SLACK).build().unwrap());
    let mut handle = candidate.handle();
    let (_cancel, _running) = spawn_run(candidate);
    sleep(LEASE * 10).await;
    assert!(!handle.is_leader(), "a leader that renews is left alone");
    leader.abort();
    let age = store.get("lock").await.unwrap().unwrap().age.unwrap();
    let last_renewal = Instant::now() - age;
    while !handle.is_leader() {
        handle.changed().await.unwrap();
    }
    let took = last_renewal.elapsed();
    assert!((LEASE..=LEASE + SLACK + SPREAD).contains(&took), "{took:?}");
}

/// A store that tells no ages.
#[derive(Clone, Debug, Default)]
struct Ageless(MemoryStore);

#[async_trait]
impl ConditionalStore for Ageless {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        Ok(self.0.get(key).await?.map(|object| object.with_age(None)))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.0.put(key, body, precondition).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.0.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.0.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.0.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.0.min_write_interval()
    }
}

#[test]
fn a_store_that_tells_no_age_is_named_once() {
    for (trusts, expected) in [(true, 1), (false, 0)] {
        let warnings = logged(Level::WARN, async || {
            let store = Ageless::default();
            plant(&store.0, &record("other", LEASE, 3)).await;
            let config = builder(ObjectLock::new(store, "lock", "a"), Journal::default().callbacks());
            let config = if trusts { config.trust_store_clock(SLACK) } else { config };
            let elector = leaderelection::DefaultLeaderElector::new(config.build().unwrap());
            let cancel = CancellationToken::new();
            let (_running, ()) =
                (tokio::spawn(async move { elector.campaign(cancel.cancelled_owned()).await }), sleep(LEASE / 2).await);
        });
        let told = warnings.iter().filter(|line| line.contains("trust_store_clock has no effect")).count();
        assert_eq!(told, expected, "{warnings:#?}");
    }
}
