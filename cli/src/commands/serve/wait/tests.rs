use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock, LocalInstant};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderElectionRecord, MemoryLock,
    MemoryStore, ObjectStoreBasedLock,
};

use tokio::time::Instant;

use super::*;

/// The clock of the test, which is paused.
#[derive(Clone, Copy, Debug)]
struct PausedClock(Instant);

#[async_trait]
impl Clock for PausedClock {
    fn now(&self) -> LocalInstant {
        LocalInstant::from_nanos(0) + self.0.elapsed()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + self.0.elapsed()
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        tokio::time::sleep_until(self.0 + deadline.saturating_since(LocalInstant::from_nanos(0))).await;
        self.now()
    }
}

const HOUR: Duration = Duration::from_secs(60 * 60);

fn wait(query: &str) -> Result<Wait, String> {
    let uri: axum::http::Uri = format!("http://localhost/leader?{query}").parse().unwrap();
    axum::extract::Query::try_from_uri(&uri).map(|axum::extract::Query(wait)| wait).map_err(|error| error.body_text())
}

#[test]
fn the_query_is_checked() {
    let read = |query| wait(query).map(|wait| (wait.wait, wait.after));
    assert_eq!(read("").unwrap(), (None, None));
    assert_eq!(read("wait=30s&after=7").unwrap(), (Some(Duration::from_secs(30)), Some(Some(7.into()))));
    assert_eq!(read("wait=400ms&after=").unwrap(), (Some(Duration::from_millis(400)), Some(None)));
    for (query, text) in [
        ("wait=30", "such as 15s"),
        ("after=node-1", "invalid fencing token node-1"),
        ("until=30s", "unknown field `until`"),
    ] {
        let error = read(query).unwrap_err();
        assert!(error.contains(text), "{error}");
    }
}

fn lock(store: &MemoryStore, identity: &str) -> MemoryLock {
    MemoryLock::new(store.clone(), "lock", identity)
}

fn follower(store: &MemoryStore) -> DefaultLeaderElector {
    let config =
        LeaderElectionConfig::builder(lock(store, "beta"), LeaderCallbacks::new()).clock(PausedClock(Instant::now()));
    DefaultLeaderElector::new(config.build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_leader_changes_and_not_before() {
    let store = MemoryStore::new();
    let other = lock(&store, "alpha");
    let version = other.create(&LeaderElectionRecord::new("alpha", HOUR)).await.unwrap();
    let elector = Arc::new(follower(&store));
    let (mut handle, shutdown) = (elector.handle(), CancellationToken::new());
    let (running, token) = (Arc::clone(&elector), shutdown.clone());
    let campaign = tokio::spawn(async move { running.campaign(token.cancelled_owned()).await });
    while handle.leader().as_deref() != Some("alpha") {
        handle.changed().await.unwrap();
    }
    let ask = async |query: &str| wait(query).unwrap().leader(&handle, &shutdown).await.fencing_token;
    let began = Instant::now();
    assert_eq!(ask("").await, Some(0.into()));
    assert_eq!(ask("wait=30s&after=6").await, Some(0.into()), "another token is news");
    assert_eq!(ask("wait=30s&after=").await, Some(0.into()), "somebody is news to who knows of nobody");
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(ask("wait=30s&after=0").await, Some(0.into()));
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    assert_eq!(ask("wait=1h&after=0").await, Some(0.into()));
    assert_eq!(began.elapsed(), Duration::from_secs(90), "no wait is longer than a minute");

    let mut record = LeaderElectionRecord::new("gamma", HOUR);
    record.leader_transitions = 1;
    let (change, token) = tokio::join!(other.update(&record, &version), ask("wait=30s"));
    change.unwrap();
    assert_eq!(token, Some(1.into()));
    assert!(began.elapsed() < Duration::from_secs(100));

    let waiting = wait("wait=60s&after=1").unwrap();
    let (told, ()) = tokio::join!(waiting.leader(&handle, &shutdown), async { shutdown.cancel() });
    assert_eq!(told.fencing_token, Some(1.into()), "the end of the process ends the wait");
    assert!(began.elapsed() < Duration::from_secs(100));
    campaign.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_runs_out_is_a_change() {
    let store = MemoryStore::new();
    let record = LeaderElectionRecord::new("alpha", Duration::from_secs(20));
    lock(&store, "alpha").create(&record).await.unwrap();
    let elector = Arc::new(follower(&store));
    let (mut handle, shutdown) = (elector.handle(), CancellationToken::new());
    // The elector stops polling, as if the store were down.
    let (running, token) = (Arc::clone(&elector), shutdown.clone());
    let campaign = tokio::spawn(async move { running.campaign(token.cancelled_owned()).await });
    while handle.leader().as_deref() != Some("alpha") {
        handle.changed().await.unwrap();
    }
    campaign.abort();
    let left = wait("wait=60s&after=0").unwrap().leader(&handle, &CancellationToken::new()).await;
    assert_eq!((left.fencing_token, left.name.as_str(), left.holder.as_str()), (None, "", "alpha"));
}
