//! A store that counts its calls and fails on demand, and a session on paused time.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use leaderelection::clock::TokioClock;
use leaderelection::{
    ConditionalStore, LeaderElectionRecord, ListedObject, MemoryStore, Precondition, Session, SessionBuilder,
    StoreError, StoreErrorKind, Version, VersionedObject, async_trait,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Get,
    Put,
    Delete,
    List,
}

type Faults = dyn Fn(Call, &str) -> Option<Fault> + Send;

/// A [`MemoryStore`] under observation.
#[derive(Clone, Default)]
pub(super) struct Rough {
    pub(super) inner: MemoryStore,
    calls: Arc<Mutex<Vec<(Call, String)>>>,
    faults: Arc<Mutex<Option<Box<Faults>>>>,
}

impl Rough {
    /// Lets calls go wrong from now on.
    pub(super) fn fail(&self, faults: impl Fn(Call, &str) -> Option<Fault> + Send + 'static) {
        *self.faults.lock().unwrap() = Some(Box::new(faults));
    }

    /// Lets every call go wrong from now on.
    pub(super) fn begin_outage(&self, kind: StoreErrorKind) {
        self.fail(move |_, _| Some(Fault::Refuse(kind)));
    }

    pub(super) fn recover(&self) {
        *self.faults.lock().unwrap() = None;
    }

    /// The calls since the last call of this function.
    pub(super) fn take_calls(&self) -> Vec<(Call, String)> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// The keys of the writes since the last look at the calls.
    pub(super) fn take_writes(&self) -> Vec<String> {
        let writes = self.take_calls().into_iter().filter(|(call, _)| matches!(call, Call::Put | Call::Delete));
        writes.map(|(_, key)| key).collect()
    }

    pub(super) async fn record(&self, key: &str) -> Option<LeaderElectionRecord> {
        let found = self.inner.get(key).await.unwrap()?;
        let longest = leaderelection::DEFAULT_MAX_LEASE_DURATION;
        Some(leaderelection::session::read_record(&found.body, longest).unwrap())
    }

    async fn through<T>(
        &self,
        call: Call,
        key: &str,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.calls.lock().unwrap().push((call, key.to_owned()));
        let fault = self.faults.lock().unwrap().as_ref().and_then(|faults| faults(call, key));
        match fault {
            None => answer.await,
            Some(fault) => fault.befall(answer, |kind| StoreError::new(kind, "injected")).await,
        }
    }
}

impl fmt::Debug for Rough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rough")
    }
}

#[async_trait]
impl ConditionalStore for Rough {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.through(Call::Get, key, self.inner.get(key)).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.through(Call::Put, key, self.inner.put(key, body, precondition)).await
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        self.through(Call::Delete, key, self.inner.delete(key, expected)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.through(Call::List, prefix, self.inner.list(prefix)).await
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }
}

pub(super) fn builder(store: &Rough, identity: &str) -> SessionBuilder {
    Session::builder(store.clone(), "fleet", identity).clock(TokioClock::new())
}

pub(super) fn session(store: &Rough, identity: &str) -> Session {
    builder(store, identity).build().unwrap()
}

/// Runs a session on a task of its own.
pub(super) fn run(session: &Session, cancel: &CancellationToken) -> JoinHandle<()> {
    let (session, cancel) = (session.clone(), cancel.clone());
    tokio::spawn(async move { session.run(cancel).await.unwrap() })
}
