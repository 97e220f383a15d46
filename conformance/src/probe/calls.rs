//! The calls of a probe: bounded, counted and timed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use leaderelection::clock::LocalInstant;
use leaderelection::{ConditionalStore, Precondition, StoreError, StoreErrorKind, TimeLimit, Version, VersionedObject};

use super::check::Check;
use super::config::ProbeConfig;
use super::ledger::{Ledger, Object};
use super::report::{Latency, ProbeReport};
use crate::patience::{PAUSE, patiently};

/// One probe of one store.
pub(super) struct Prober<'a> {
    pub(super) store: &'a dyn ConditionalStore,
    pub(super) config: &'a ProbeConfig,
    folder: String,
    ledger: Mutex<Ledger>,
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

    /// Returns a key that nobody has used. The object at this key will be deleted.
    pub(super) fn new_key(&self, name: &str) -> String {
        self.with_ledger(|ledger| {
            ledger.keys += 1;
            let key = format!("{}/{name}-{}", self.folder, ledger.keys);
            ledger.objects.insert(key.clone(), Object::default());
            key
        })
    }

    /// Reads, and repeats a read that the store rejects for now.
    pub(super) async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        patiently(|time| self.sleep(time), || self.call(key, self.store.get(key))).await
    }

    /// Writes, and repeats a write that the store rejects for now.
    pub(super) async fn put(
        &self,
        key: &str,
        body: &'static str,
        precondition: &Precondition,
    ) -> Result<VersionedObject, StoreError> {
        let body = Bytes::from_static(body.as_bytes());
        let version =
            patiently(|time| self.sleep(time), || self.put_once(key, body.clone(), precondition.clone())).await?;
        Ok(VersionedObject::new(body, version))
    }

    pub(super) async fn put_once(
        &self,
        key: &str,
        body: Bytes,
        precondition: Precondition,
    ) -> Result<Version, StoreError> {
        // The create counts as unsettled until its answer arrives, so a create whose future is dropped stays
        // counted. A late update needs no count, because its object has changed or is gone.
        let creates = usize::from(precondition == Precondition::Absent);
        self.unsettled(key, |unsettled| unsettled + creates);
        let answer = self.call(key, self.store.put(key, body, &precondition)).await;
        if answer.as_ref().map_or_else(|error| error.kind() != StoreErrorKind::Ambiguous, |_| true) {
            self.unsettled(key, |unsettled| unsettled - creates);
        }
        answer
    }

    /// Deletes, and repeats a deletion that the store rejects for now.
    pub(super) async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        patiently(|time| self.sleep(time), || self.call(key, self.store.delete(key, expected))).await
    }

    pub(super) async fn pause(&self, asked: Option<Duration>) {
        self.sleep(asked.unwrap_or(PAUSE)).await;
    }

    async fn sleep(&self, time: Duration) {
        let clock = &self.config.clock;
        clock.sleep_until(clock.now() + time).await;
    }

    /// One request, bounded in time.
    pub(super) async fn call<T>(
        &self,
        key: &str,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let ProbeConfig { clock, request_timeout, .. } = self.config;
        self.with_ledger(|ledger| ledger.requests += 1);
        let (sent, limit) = (clock.now(), TimeLimit::new(*request_timeout).on_clock(Arc::clone(clock)));
        let answer = match limit.answer(request).await {
            Ok(answer) => {
                let latency = clock.now().saturating_since(sent);
                self.with_ledger(|ledger| ledger.latencies.push(latency));
                answer
            }
            Err(silence) => Err(silence.of(&self.store.describe(key))),
        };
        if let Err(error) = &answer
            && error.kind() != StoreErrorKind::Conflict
        {
            self.with_ledger(|ledger| ledger.last_error = Some(error.to_string()));
        }
        answer
    }

    fn unsettled(&self, key: &str, change: impl Fn(usize) -> usize) {
        self.with_ledger(|ledger| {
            if let Some(object) = ledger.objects.get_mut(key) {
                object.unsettled = change(object.unsettled);
            }
        });
    }

    pub(super) fn with_ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
