use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock, LocalInstant};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore, Timings,
};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio_util::sync::CancellationToken;

use super::super::latency::Latencies;
use super::super::program::Program;
use super::*;

/// A clock that a test advances.
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

    async fn sleep_until(&self, _: LocalInstant) -> LocalInstant {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_leader_that_stopped_renewing_is_not_healthy() {
    let clock = HandClock::default();
    let lock = MemoryLock::new(MemoryStore::new(), "lock", "alpha");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).clock(clock.clone());
    let elector = DefaultLeaderElector::new(config.build().unwrap());
    let facts = State(Arc::new(Facts {
        lock: "memory:lock".to_owned(),
        handle: elector.handle(),
        program: Arc::new(Program::new(None, None, false)),
        timings: Timings::default(),
        latencies: vec![("memory:lock".to_owned(), Latencies::default())],
        health: elector.health_check(Duration::from_secs(20)),
        drain: Duration::from_secs(3),
        draining: CancellationToken::new(),
        shutdown: CancellationToken::new(),
        metrics: PrometheusBuilder::new().build_recorder().handle(),
        peers: None,
    }));
    let mut handle = elector.handle();
    let mut campaign = pin!(elector.campaign(pending()));
    while !handle.is_leader() {
        tokio::select! {
            _ = &mut campaign => panic!("nobody cancelled it"),
            changed = handle.changed() => changed.unwrap(),
        }
    }
    for path in [healthz(facts.clone()).await.0, readyz(facts.clone()).await.0, leading(facts.clone()).await.status()] {
        assert_eq!(path, StatusCode::OK);
    }
    let max_age = async |facts| leading(facts).await.headers().get(CACHE_CONTROL).cloned();
    assert_eq!(max_age(facts.clone()).await.unwrap(), "max-age=3", "a signal ends leadership after the drain");
    clock.0.store(8, Ordering::Relaxed);
    let answer = leading(facts.clone()).await;
    assert_eq!(answer.headers()[CACHE_CONTROL], "max-age=2");
    let body = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
    assert_eq!(body, "leading\ngood for 2.000 seconds\n");

    // From here on, nothing polls the elector.
    clock.0.store(30, Ordering::Relaxed);
    assert_eq!(max_age(facts.clone()).await, None);
    assert_eq!(leading(facts.clone()).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(readyz(facts.clone()).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(healthz(facts.clone()).await.0, StatusCode::OK, "it may be late");
    clock.0.store(36, Ordering::Relaxed);
    let (status, text) = healthz(facts).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.starts_with("failed to renew leadership of "), "{text}");
}

#[test]
fn the_description_has_every_route_and_no_other() {
    let description: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
    let mut described: Vec<_> = description["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut routes: Vec<_> =
        guarded().iter().map(|(path, _)| *path).chain(open().iter().map(|(path, _)| *path)).collect();
    described.sort_unstable();
    routes.sort_unstable();
    assert_eq!(described, routes);
    let is_open = |path: &str| description["paths"][path]["get"]["security"].is_array();
    assert!(open().iter().all(|(path, _)| is_open(path)) && !guarded().iter().any(|(path, _)| is_open(path)));
}
