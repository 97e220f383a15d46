//! The age of a lease by the clock of a real store (rule 19).

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::implement::ConditionalStore;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderElectionRecord, ObjectLock,
    ObjectStoreBasedLock as _, Timings,
};
use leaderelection_backends::file::FileStore;
use leaderelection_test_support::faulty::{Call, Faulty};
use tokio::time::{Instant, sleep, timeout};

use crate::cloud::Cloud;

const LEASE: Duration = Duration::from_secs(4);
const SLACK: Duration = Duration::from_secs(2);

/// The lease of the candidate, which nobody waits for. Its requests have time on a busy machine, because each one that is given
/// up costs another read.
const OWN_LEASE: Duration = Duration::from_secs(60);

/// A bound that only a failure reaches.
const BOUND: Duration = Duration::from_secs(60);

/// Leaves the record of a dead leader behind, waits until the store says that the lease is over, and returns the number of
/// reads after which a candidate leads that starts then, and the time until it leads.
async fn until_leading(store: Arc<dyn ConditionalStore>, key: &str, slack: Option<Duration>) -> (usize, Duration) {
    let planter = ObjectLock::new(Arc::clone(&store), key, "planter");
    planter.create(&LeaderElectionRecord::new("dead", LEASE)).await.expect("a record");
    let old = async {
        while store.get(key).await.expect("a read").expect("a record").age.expect("an age") < LEASE + SLACK * 2 {
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(BOUND, old).await.expect("the store's clock goes on");
    let counted = Faulty::around(store);
    let lock = ObjectLock::new(counted.clone(), key, "candidate");
    let timings = Timings::new(OWN_LEASE, OWN_LEASE * 2 / 3, LEASE / 8).expect("valid timings");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).timings(timings);
    let config = slack.into_iter().fold(config, |config, slack| config.trust_store_clock(slack));
    let elector = DefaultLeaderElector::new(config.build().expect("a valid configuration"));
    let began = Instant::now();
    let work = async move |_| (counted.count(Call::Get), began.elapsed());
    let led = elector.run_while_leading(pending(), work);
    timeout(BOUND, led).await.expect("a leader").expect("a term")
}

/// Replaces a dead leader at the first read, and another one after a lease without trust in the store's clock.
async fn is_replaced(store: Arc<dyn ConditionalStore>, [trusting, wary]: [String; 2]) {
    assert_eq!(until_leading(Arc::clone(&store), &trusting, Some(SLACK)).await.0, 1);
    let (reads, waited) = until_leading(store, &wary, None).await;
    assert!(reads > 1 && waited >= LEASE, "a lease is waited for: {waited:?}, {reads} reads");
}

async fn a_dead_leader_is_replaced_at_the_first_read(cloud: Arc<Cloud>) {
    is_replaced(cloud.store().await, [cloud.key(), cloud.key()]).await;
    cloud.clear().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3() {
    a_dead_leader_is_replaced_at_the_first_read(Cloud::s3().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure() {
    a_dead_leader_is_replaced_at_the_first_read(Cloud::azure().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let store: Arc<dyn ConditionalStore> = Arc::new(FileStore::new(directory.path()));
    is_replaced(store, ["trusting", "wary"].map(str::to_owned)).await;
}
