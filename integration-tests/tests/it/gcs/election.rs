//! Elections on the fake with Google's limit of one write per second to an object.

use std::future::pending;
use std::time::{Duration, Instant};

use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, ObjectStoreBasedLock as _};
use leaderelection_backends::gcs::{GcsLock, GcsStore};
use leaderelection_integration_tests::servers::fake_gcs::{FakeGcs, Options};
use tokio::time::timeout;

use crate::every_store::CloudStore as _;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_lease_is_acquired_and_released_within_a_second() {
    let server = FakeGcs::start(Options { limits_writes: true, ..Options::default() }).await;
    let store = GcsStore::on(&server.url()).await;
    // On a busy machine, a release may come so late that it is not refused.
    for number in 0..20 {
        let lock = GcsLock::new(store.clone(), format!("lock-{number}"), "candidate");
        let config = LeaderElectionConfig::builder(lock.clone(), LeaderCallbacks::new()).release_on_cancel(true);
        let elector = DefaultLeaderElector::new(config.build().expect("a configuration"));

        let began = Instant::now();
        let led = elector.run_while_leading(pending(), |_leadership| async { "done" });
        assert_eq!(timeout(PATIENCE, led).await.expect("in time").expect("led"), "done");
        let record = lock.get().await.expect("read").expect("a record").record;
        assert_eq!((record.holder_identity.as_str(), record.leader_transitions), ("", 1));
        assert!(began.elapsed() < Duration::from_secs(10), "the lease was not released but expired");
        if server.refused_writes() > 0 {
            return;
        }
    }
    panic!("every release came too late to be refused");
}

#[tokio::test]
async fn an_election_never_opens_grpc() {
    let server = FakeGcs::start(Options::default()).await;
    let lock = GcsLock::new(GcsStore::on(&server.url()).await, "lock", "candidate");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).release_on_cancel(true).build();
    let elector = DefaultLeaderElector::new(config.expect("a configuration"));
    let led = elector.run_while_leading(pending(), |_leadership| async {});
    timeout(PATIENCE, led).await.expect("in time").expect("led");
    let requests = server.requests();
    assert!(
        !requests.is_empty() && requests.iter().all(|request| !request.contains("google.storage.v2")),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_retry_period_that_the_limit_would_refuse_is_warned_about() {
    let server = FakeGcs::start(Options::default()).await;
    let lock = GcsLock::new(GcsStore::on(&server.url()).await, "lock", "candidate");
    for (retry_period, warned) in [(Duration::from_millis(999), true), (Duration::from_secs(1), false)] {
        let builder = LeaderElectionConfig::builder(lock.clone(), LeaderCallbacks::new());
        let config = builder.retry_period(retry_period).build().expect("a configuration");
        let warnings: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
        let is_told = warnings.iter().any(|warning| warning.contains("use a longer retry_period"));
        assert_eq!(is_told, warned, "{retry_period:?}: {warnings:?}");
    }
}
