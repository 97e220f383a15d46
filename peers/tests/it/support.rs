//! Electors in one process, over a store that counts and that can be cut off, and peers on sockets of this machine.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use leaderelection::implement::{
    ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject, async_trait,
};
use leaderelection::lock::PeerAddress;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder,
    LeaderElectionRecord, LeaderHandle, MemoryStore, ObjectLock, ObjectStoreBasedLock, StoreError, StoreErrorKind,
    Timings,
};
use leaderelection_peers::{Attached, Peers, PeersBuilder, SharedKey};
use metrics::LocalRecorderGuard;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// A lease whose end a test waits for.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// A lease that does not expire while a busy machine stands still.
pub(crate) const LONG_LEASE: Duration = Duration::from_secs(60);
/// The time by which a busy machine may delay what happens soon.
pub(crate) const DELAY: Duration = Duration::from_secs(10);
pub(crate) const DEADLINE: Duration = Duration::from_secs(2);
pub(crate) const RETRY: Duration = Duration::from_millis(200);
/// Longer than any test waits for what should happen soon.
pub(crate) const FOREVER: Duration = Duration::from_secs(60);
pub(crate) const KEY: &str = "locks/scheduler";
pub(crate) const SECRET: &str = "correct-horse-battery-staple-0123456789";

pub(crate) fn key() -> SharedKey {
    SharedKey::new(SECRET).unwrap()
}

/// A store whose requests are counted, and can fail.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    inner: Arc<dyn ConditionalStore>,
    /// The other store to which this way leads, once it leads elsewhere.
    elsewhere: Arc<OnceLock<Arc<dyn ConditionalStore>>>,
    reads: Arc<AtomicU32>,
    is_cut_off: Arc<AtomicBool>,
}

impl Default for Store {
    fn default() -> Self {
        Self::of(Arc::new(MemoryStore::new()))
    }
}

impl Store {
    pub(crate) fn of(inner: Arc<dyn ConditionalStore>) -> Self {
        Self { inner, elsewhere: Arc::default(), reads: Arc::default(), is_cut_off: Arc::default() }
    }

    /// The same objects, by a way of its own.
    pub(crate) fn another_way(&self) -> Self {
        Self::of(Arc::clone(&self.inner))
    }

    pub(crate) fn reads(&self) -> u32 {
        self.reads.load(Ordering::SeqCst)
    }

    pub(crate) fn cut_off(&self, is_cut_off: bool) {
        self.is_cut_off.store(is_cut_off, Ordering::SeqCst);
    }

    /// Lets this way lead to a copy of the lock from now on.
    pub(crate) async fn lead_elsewhere(&self) {
        let (copy, found) = (MemoryStore::new(), self.inner.get(KEY).await.unwrap().unwrap());
        copy.put(KEY, found.body, &Precondition::Absent).await.unwrap();
        self.elsewhere.set(Arc::new(copy)).unwrap();
    }

    fn way(&self) -> Result<&dyn ConditionalStore, StoreError> {
        match self.is_cut_off.load(Ordering::SeqCst) {
            true => Err(StoreError::new(StoreErrorKind::Ambiguous, "cannot use the store: cut off")),
            false => Ok(self.elsewhere.get().unwrap_or(&self.inner).as_ref()),
        }
    }

    pub(crate) async fn record(&self) -> LeaderElectionRecord {
        let found = self.inner.get(KEY).await.unwrap().unwrap();
        LeaderElectionRecord::from_json(&found.body, Duration::MAX).unwrap()
    }

    /// Waits for the next write of the leader.
    pub(crate) async fn renewed(&self) {
        let (last, start) = (self.record().await.write_id, Instant::now());
        while self.record().await.write_id == last {
            assert!(start.elapsed() < FOREVER, "waited in vain for another write than {last:?}");
            sleep(Duration::from_millis(2)).await;
        }
    }
}

#[async_trait]
impl ConditionalStore for Store {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.way()?.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.way()?.put(key, body, precondition).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.inner.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.inner.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        format!("memory:{key}")
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.inner.min_write_interval()
    }
}

/// Peers that share a key and speak plain HTTP on this machine.
pub(crate) fn plain() -> PeersBuilder {
    Peers::builder().key(key()).plain_http(true).allow("127.0.0.0/8".parse().unwrap())
}

/// The same with a server.
pub(crate) fn serving() -> Peers {
    plain().listen("127.0.0.1:0".parse().unwrap()).build().unwrap()
}

/// The address at which peers answer over plain HTTP.
pub(crate) fn url(peers: &Peers) -> String {
    format!("http://{}/health/leadership", peers.listens_at().unwrap())
}

/// A candidate that campaigns on a task of its own.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) handle: LeaderHandle,
    pub(crate) store: Store,
    pub(crate) peers: Peers,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    pub(crate) attached: Attached,
}

impl Node {
    /// Starts a candidate with a server that is advertised.
    pub(crate) fn start(store: &Store, identity: &str) -> Self {
        Self::start_for(store, identity, LONG_LEASE)
    }

    /// The same with another lease.
    pub(crate) fn start_for(store: &Store, identity: &str, lease: Duration) -> Self {
        let peers = serving();
        let url = url(&peers);
        Self::start_with(store, identity, peers, Some(&url), lease)
    }

    /// Starts a candidate that only gets messages.
    pub(crate) fn listening(store: &Store, identity: &str, peers: Peers) -> Self {
        Self::start_with(store, identity, peers, None, LONG_LEASE)
    }

    pub(crate) fn start_with(
        store: &Store,
        identity: &str,
        peers: Peers,
        address: Option<&str>,
        lease: Duration,
    ) -> Self {
        Self::start_changed(store, identity, peers, address, lease, |config| config)
    }

    pub(crate) fn start_changed(
        store: &Store,
        identity: &str,
        peers: Peers,
        address: Option<&str>,
        lease: Duration,
        change: impl FnOnce(LeaderElectionConfigBuilder) -> LeaderElectionConfigBuilder,
    ) -> Self {
        let store = store.another_way();
        let lock = ObjectLock::new(store.clone(), KEY, identity);
        let callbacks = LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
        let mut config = LeaderElectionConfig::builder(lock, callbacks)
            .lease_duration(lease)
            .renew_deadline(lease - (LEASE - DEADLINE))
            .retry_period(RETRY)
            .name(identity)
            .release_on_cancel(true);
        if let Some(address) = address {
            config = config.advertise(address);
        }
        let elector = DefaultLeaderElector::new(change(config).build().unwrap());
        let (handle, stop) = (elector.handle(), CancellationToken::new());
        let attached = peers.attach(&elector).unwrap();
        let cancel = stop.clone();
        let task = tokio::spawn(async move { elector.campaign(cancel.cancelled_owned()).await.unwrap() });
        Self { handle, store, peers, stop, task, attached }
    }

    pub(crate) async fn leads(&self) {
        until("it leads", || self.handle.is_leader()).await;
    }

    /// Shortens the lease of the leader, from its next write on.
    pub(crate) async fn shorten_lease(&self) {
        self.handle.reconfigure(Timings::new(LEASE, DEADLINE, RETRY).unwrap()).unwrap();
        while self.store.record().await.lease_duration != LEASE {
            self.store.renewed().await;
        }
    }

    /// Ends the candidate gracefully.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        self.peers.finish(Duration::from_secs(1)).await;
    }

    /// Ends the candidate without a release.
    pub(crate) fn kill(self) {
        self.task.abort();
    }
}

/// Writes the record of a leader that has just renewed and died, with an address.
pub(crate) async fn plant(store: &Store, address: &str, lease: Duration) {
    let mut record = LeaderElectionRecord::new("dead", lease);
    (record.leader_transitions, record.write_id) = (7, Some("dead-1".to_owned()));
    record.peer = Some(PeerAddress::new(address, 7).into());
    ObjectLock::new(store.another_way(), KEY, "planter").create(&record).await.unwrap();
}

/// Waits for an event, far longer than it should take.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < FOREVER, "waited in vain until {what}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// Observes again until nothing is wrong: a machine that stands still for two retry periods ends each stream.
pub(crate) async fn eventually<E: Debug>(mut observe: impl AsyncFnMut() -> Result<(), E>) {
    let start = Instant::now();
    while let Err(wrong) = observe().await {
        assert!(start.elapsed() < FOREVER, "observed in vain: {wrong:?}");
    }
}

/// The counters of this thread, from now on.
pub(crate) struct Counters<'a> {
    snapshotter: Snapshotter,
    counts: Mutex<BTreeMap<String, u64>>,
    _guard: LocalRecorderGuard<'a>,
}

impl<'a> Counters<'a> {
    pub(crate) fn of(recorder: &'a DebuggingRecorder) -> Self {
        let snapshotter = recorder.snapshotter();
        Self { snapshotter, counts: Mutex::default(), _guard: metrics::set_default_local_recorder(recorder) }
    }

    /// The count of a metric, by the end of its name and by the values of its labels.
    pub(crate) fn get(&self, counted: &str, labels: &[&str]) -> u64 {
        let mut counts = self.counts.lock().unwrap();
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            if let DebugValue::Counter(count) = value {
                let (_, key) = key.into_parts();
                let labels: Vec<_> = key.labels().map(|label| label.value().to_owned()).collect();
                *counts.entry(format!("{}{labels:?}", key.name())).or_default() += count;
            }
        }
        *counts.get(&format!("leader_election_peer_{counted}_total{labels:?}")).unwrap_or(&0)
    }

    /// Waits until a certificate ends at this time, by the metric with these labels.
    pub(crate) async fn until_expiry(&self, labels: &[&str], seconds: f64) {
        until("the metric tells the end", || {
            self.snapshotter.snapshot().into_vec().into_iter().any(|(key, _, _, value)| {
                let (_, key) = key.into_parts();
                let is_meant = key.labels().map(|label| label.value()).eq(labels.iter().copied());
                let name = key.name() == "leader_election_certificate_expiry_timestamp_seconds";
                name && is_meant && value == DebugValue::Gauge(seconds.into())
            })
        })
        .await;
    }

    pub(crate) async fn reach(&self, counted: &str, labels: &[&str], least: u64) {
        let start = Instant::now();
        while self.get(counted, labels) < least {
            let counts: Vec<_> =
                self.counts.lock().unwrap().clone().into_iter().filter(|(_, count)| *count > 0).collect();
            assert!(start.elapsed() < FOREVER, "waited in vain until {counted} {labels:?} is {least}: {counts:?}");
            sleep(Duration::from_millis(2)).await;
        }
    }
}
