//! A lock that records its calls and fails on demand, and an elector in simulated time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::clock::TokioClock;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder,
    LeaderElectionRecord, LockError, MemoryLock, MemoryStore, ObjectStoreBasedLock, StoreErrorKind,
};
use tokio_util::sync::CancellationToken;

pub(crate) use leaderelection_test_support::faulty::{Call, Fault, Faulty};
pub(crate) use leaderelection_test_support::logs::{logged, warnings_of};

pub(crate) const LEASE: Duration = Duration::from_secs(15);
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
pub(crate) const RETRY: Duration = Duration::from_secs(2);

/// One call of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Op {
    Get,
    Create,
    Update,
}

/// A [`MemoryLock`] under observation.
#[derive(Clone, Debug)]
pub(crate) struct TestLock {
    inner: MemoryLock,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    ops: Vec<Op>,
    seen: BTreeMap<Op, usize>,
    /// The faults by operation and by the number of earlier operations of that kind.
    faults: BTreeMap<(Op, usize), Fault>,
    always: BTreeMap<Op, Fault>,
    /// The fault of every call from now on.
    outage: Option<Fault>,
}

impl TestLock {
    pub(crate) fn new(store: &MemoryStore, identity: &str) -> Self {
        Self { inner: MemoryLock::new(store.clone(), "lock", identity), shared: Arc::default() }
    }

    /// Lets the `nth` operation of a kind, counted from 0, go wrong.
    pub(crate) fn with_fault(self, op: Op, nth: usize, fault: Fault) -> Self {
        self.shared.lock().unwrap().faults.insert((op, nth), fault);
        self
    }

    /// Lets every operation of a kind go wrong that no other fault spoils.
    pub(crate) fn with_every(self, op: Op, fault: Fault) -> Self {
        self.shared.lock().unwrap().always.insert(op, fault);
        self
    }

    pub(crate) fn set_outage(&self, fault: Option<Fault>) {
        self.shared.lock().unwrap().outage = fault;
    }

    pub(crate) fn ops(&self) -> Vec<Op> {
        self.shared.lock().unwrap().ops.clone()
    }

    /// The operations since the last call.
    pub(crate) fn take_ops(&self) -> Vec<Op> {
        std::mem::take(&mut self.shared.lock().unwrap().ops)
    }

    fn fault(&self, op: Op) -> Option<Fault> {
        let mut shared = self.shared.lock().unwrap();
        shared.ops.push(op);
        let nth = *shared.seen.entry(op).and_modify(|n| *n += 1).or_insert(0);
        shared.outage.or_else(|| shared.faults.get(&(op, nth)).or_else(|| shared.always.get(&op)).copied())
    }

    fn error(&self, kind: StoreErrorKind) -> LockError {
        LockError::new(kind, "cannot use lock", self.describe(), "injected")
    }

    async fn through<T>(
        &self,
        op: Op,
        call: impl Future<Output = Result<T, LockError>> + Send,
    ) -> Result<T, LockError> {
        match self.fault(op) {
            None => call.await,
            Some(fault) => fault.befall(call, |kind| self.error(kind)).await,
        }
    }
}

#[async_trait]
impl ObjectStoreBasedLock for TestLock {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        self.through(Op::Get, self.inner.get()).await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.through(Op::Create, self.inner.create(record)).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.through(Op::Update, self.inner.update(record, expected)).await
    }

    fn identity(&self) -> &str {
        self.inner.identity()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}

/// The calls of the callbacks, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn write(&self, entry: impl Into<String>) {
        self.0.lock().unwrap().push(entry.into());
    }

    pub(crate) fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Returns callbacks without work that write this journal.
    pub(crate) fn stops(&self) -> LeaderCallbacks {
        let stop = self.clone();
        LeaderCallbacks::new().on_stop_leading(move || stop.write("stop"))
    }

    /// Returns callbacks that write this journal. The work ends when leadership is lost.
    pub(crate) fn callbacks(&self) -> LeaderCallbacks {
        let start = self.clone();
        self.stops().on_start_leading(move |leadership| {
            let journal = start.clone();
            journal.write(format!("start {}", leadership.fencing_token()));
            async move {
                leadership.lost().await;
                journal.write("work ended");
            }
        })
    }
}

/// client-go's timings on tokio's clock, without a release after a cancellation, with the same jitter in every run.
pub(crate) fn builder(
    lock: impl ObjectStoreBasedLock,
    callbacks: impl Into<LeaderCallbacks>,
) -> LeaderElectionConfigBuilder {
    let seed = lock.identity().bytes().fold(0, |seed, byte| seed * 31 + u64::from(byte));
    LeaderElectionConfig::builder(lock, callbacks)
        .lease_duration(LEASE)
        .renew_deadline(DEADLINE)
        .retry_period(RETRY)
        .release_on_cancel(false)
        .clock(TokioClock::new())
        .seed(seed)
}

pub(crate) fn elector(lock: impl ObjectStoreBasedLock, callbacks: LeaderCallbacks) -> DefaultLeaderElector {
    DefaultLeaderElector::new(builder(lock, callbacks).build().unwrap())
}

/// A record of another holder.
pub(crate) fn record(holder: &str, lease: Duration, transitions: u64) -> LeaderElectionRecord {
    let mut record = LeaderElectionRecord::new(holder, lease);
    record.leader_transitions = transitions;
    record.write_id = Some(format!("{holder}-{transitions}"));
    record
}

/// Returns the record that the store holds now.
pub(crate) async fn stored(store: &MemoryStore) -> VersionedRecord {
    MemoryLock::new(store.clone(), "lock", "observer").get().await.unwrap().unwrap()
}

/// Puts a record into the store, whatever the store held before.
pub(crate) async fn plant(store: &MemoryStore, record: &LeaderElectionRecord) -> Version {
    let lock = MemoryLock::new(store.clone(), "lock", "planter");
    match lock.get().await.unwrap() {
        None => lock.create(record).await.unwrap(),
        Some(found) => lock.update(record, &found.version).await.unwrap(),
    }
}

/// Runs an elector on a task of its own; returns the token that cancels it.
pub(crate) fn spawn_run(
    elector: DefaultLeaderElector,
) -> (CancellationToken, tokio::task::JoinHandle<leaderelection::RunOutcome>) {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    (cancel, tokio::spawn(async move { elector.run(token.cancelled_owned()).await.unwrap() }))
}
