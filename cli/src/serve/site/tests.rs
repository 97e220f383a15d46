use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock, LocalInstant};
use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
use metrics_exporter_prometheus::PrometheusBuilder;

use super::*;

/// Goes on when it is told to.
#[derive(Clone, Debug, Default)]
struct HandClock(Arc<AtomicU64>);

#[async_trait]
impl Clock for HandClock {
    fn now(&self) -> LocalInstant {
        LocalInstant::from_nanos(0) + Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn wall_time(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }

    async fn sleep_until(&self, _: LocalInstant) {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_leader_that_stopped_renewing_is_not_healthy() {
    let clock = HandClock::default();
    let lock = MemoryLock::new(MemoryStore::new(), "lock", "alpha");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).clock(clock.clone());
    let elector = DefaultLeaderElector::new(config.build().unwrap());
    let site = State(Arc::new(Site {
        lock: "memory:lock".to_owned(),
        handle: elector.handle(),
        health: elector.health_check(Duration::from_secs(20)),
        ready_within: Duration::from_secs(15),
        draining: CancellationToken::new(),
        metrics: PrometheusBuilder::new().build_recorder().handle(),
        token: None,
    }));
    let mut handle = elector.handle();
    let mut campaign = pin!(elector.campaign(CancellationToken::new()));
    while !handle.is_leader() {
        tokio::select! {
            _ = &mut campaign => panic!("nobody cancelled it"),
            changed = handle.changed() => changed.unwrap(),
        }
    }
    for path in [healthz(site.clone()).await.0, readyz(site.clone()).await.0, leading(site.clone()).await.0] {
        assert_eq!(path, StatusCode::OK);
    }

    // Nobody polls the elector any more.
    clock.0.store(30, Ordering::Relaxed);
    assert_eq!(leading(site.clone()).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(readyz(site.clone()).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(healthz(site.clone()).await.0, StatusCode::OK, "it may be late");
    clock.0.store(36, Ordering::Relaxed);
    let (status, text) = healthz(site).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.starts_with("failed to renew leadership of "), "{text}");
}
