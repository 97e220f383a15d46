//! How a probe calls the store: bounded, counted and timed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::check::Check;
use super::cleaning::Object;
use super::config::ProbeConfig;
use super::report::{Latency, ProbeReport};
use crate::clock::LocalInstant;
use crate::patience::{patiently, pause};
use crate::store::{ConditionalStore, Precondition, StoreError, StoreErrorKind, Version, VersionedObject};

/// One probe of one store.
pub(super) struct Prober<'a> {
    pub(super) store: &'a dyn ConditionalStore,
    pub(super) config: &'a ProbeConfig,
    folder: String,
    ledger: Mutex<Ledger>,
}

#[derive(Default)]
pub(super) struct Ledger {
    requests: usize,
    latencies: Vec<Duration>,
    pub(super) last_error: Option<String>,
    keys: usize,
    pub(super) objects: BTreeMap<String, Object>,
}

impl<'a> Prober<'a> {
    pub(super) fn new(store: &'a dyn ConditionalStore, config: &'a ProbeConfig) -> Self {
        Self { store, config, folder: config.folder(), ledger: Mutex::default() }
    }

    pub(super) fn report(self, checks: Vec<Check>, began: LocalInstant) -> ProbeReport {
        let ledger = self.ledger.into_inner().unwrap_or_else(PoisonError::into_inner);
        ProbeReport {
            place: self.store.describe(&self.folder),
            checks,
            writers: self.config.writers,
            rounds: self.config.rounds,
            requests: ledger.requests,
            latency: Latency::of(ledger.latencies),
            duration: self.config.clock.now().saturating_since(began),
            leftovers: ledger.objects.keys().map(|key| self.store.describe(key)).collect(),
        }
    }

    /// A key that nobody has used; its object will be cleaned up.
    pub(super) fn new_key(&self, name: &str) -> String {
        self.with_ledger(|ledger| {
            ledger.keys += 1;
            let key = format!("{}/{name}-{}", self.folder, ledger.keys);
            ledger.objects.insert(key.clone(), Object::default());
            key
        })
    }

    /// Reads, and tries again if the store rejects it for now.
    pub(super) async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        patiently(&*self.config.clock, || self.call(key, self.store.get(key))).await
    }

    /// Writes, and tries again if the store rejects it for now.
    pub(super) async fn put(
        &self,
        key: &str,
        body: &'static str,
        precondition: &Precondition,
    ) -> Result<VersionedObject, StoreError> {
        let body = Bytes::from_static(body.as_bytes());
        let version = patiently(&*self.config.clock, || self.put_once(key, body.clone(), precondition.clone())).await?;
        Ok(VersionedObject { body, version })
    }

    pub(super) async fn put_once(
        &self,
        key: &str,
        body: Bytes,
        precondition: Precondition,
    ) -> Result<Version, StoreError> {
        // Counted until the answer is in, so that a create that is dropped on its way stays counted. An
        // update that comes late finds its object changed or gone.
        let creates = usize::from(precondition == Precondition::Absent);
        self.unsettled(key, |unsettled| unsettled + creates);
        let answer = self.call(key, self.store.put(key, body, &precondition)).await;
        if answer.as_ref().map_or_else(|error| error.kind() != StoreErrorKind::Ambiguous, |_| true) {
            self.unsettled(key, |unsettled| unsettled - creates);
        }
        answer
    }

    /// Deletes, and tries again if the store rejects it for now.
    pub(super) async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        patiently(&*self.config.clock, || self.call(key, self.store.delete(key, expected))).await
    }

    pub(super) async fn pause(&self, asked: Option<Duration>) {
        pause(&*self.config.clock, asked).await;
    }

    /// One request, bounded in time.
    pub(super) async fn call<T>(
        &self,
        key: &str,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let ProbeConfig { clock, request_timeout, .. } = self.config;
        self.with_ledger(|ledger| ledger.requests += 1);
        let sent = clock.now();
        let answer = tokio::select! {
            biased;
            answer = request => {
                let latency = clock.now().saturating_since(sent);
                self.with_ledger(|ledger| ledger.latencies.push(latency));
                answer
            }
            () = clock.sleep_until(sent + *request_timeout) => {
                let object = self.store.describe(key);
                Err(StoreError::new(StoreErrorKind::Ambiguous, format!("{object}: no answer within {request_timeout:?}")))
            }
        };
        if let Err(error) = &answer
            && error.kind() != StoreErrorKind::Conflict
        {
            self.with_ledger(|ledger| ledger.last_error = Some(error.to_string()));
        }
        answer
    }

    pub(super) fn with_ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
