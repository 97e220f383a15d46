//! The calls of a probe: bounded, counted and timed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use leaderelection::causes::one_line;
use leaderelection::clock::LocalInstant;
use leaderelection::implement::{ConditionalStore, NoAnswer, Precondition, Version, VersionedObject};
use leaderelection::lock::TimeLimit;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_sequenced::{CreateOnlyStore, SequencedStore};

use super::check::{Check, Finding, Stopped};
use super::config::ProbeConfig;
use super::ledger::{Ledger, Object};
use super::report::{Latency, ProbeReport};
use crate::patience::{PAUSE, patiently};
use crate::race::{MOST_OF_A_TEXT, Refusal};

/// The setting of the time limit of a request, as a user of the library and of the command line knows it.
const REQUEST_TIMEOUT: &str = "request_timeout, --request-timeout";

/// One probe of one store. Clones are the same probe.
#[derive(Clone)]
pub(crate) struct Prober {
    pub(crate) store: Arc<dyn ConditionalStore>,
    /// The store below `store`, if that is made of one that can only create.
    pub(super) objects: Option<Arc<dyn CreateOnlyStore>>,
    pub(crate) config: Arc<ProbeConfig>,
    folder: Arc<str>,
    ledger: Arc<Mutex<Ledger>>,
}

impl Prober {
    pub(crate) fn new(store: Arc<dyn ConditionalStore>, config: &ProbeConfig) -> Self {
        let config = Arc::new(config.clone());
        Self { store, objects: None, folder: config.folder().into(), config, ledger: Arc::default() }
    }

    /// Creates a probe of a store that can only create, and of the layer that makes conditional writes of it.
    pub(super) fn of_creations(objects: Arc<dyn CreateOnlyStore>, config: &ProbeConfig) -> Self {
        let store = Arc::new(SequencedStore::new(Arc::clone(&objects)));
        Self { objects: Some(objects), ..Self::new(store, config) }
    }

    pub(super) fn report(&self, checks: Vec<Check>, began: LocalInstant) -> ProbeReport {
        let ledger = self.with_ledger(std::mem::take);
        ProbeReport {
            place: self.place(),
            checks,
            creates_only: self.objects.is_some(),
            races: self.races(),
            requests: ledger.requests,
            latency: Latency::of(ledger.latencies),
            duration: self.config.clock.now().saturating_since(began),
            leftovers: ledger.objects.keys().map(|key| self.store.describe(key)).collect(),
            unanswered_creates: ledger.unanswered_creates,
            is_out_of_time: false,
            last_error: None,
        }
    }

    /// The place of the probe's objects.
    pub(crate) fn place(&self) -> String {
        self.store.describe(&self.folder)
    }

    /// Returns a key that nobody has used. The object at this key will be deleted.
    pub(crate) fn new_key(&self, name: &str) -> String {
        self.with_ledger(|ledger| {
            ledger.keys += 1;
            let key = format!("{}/{name}-{}", self.folder, ledger.keys);
            ledger.objects.insert(key.clone(), Object::default());
            key
        })
    }

    /// Reads, and repeats a read that the store rejects for now.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        patiently(|time| self.sleep(time), || self.call(key, self.store.get(key))).await
    }

    /// Writes, and repeats a write that the store rejects for now.
    pub(crate) async fn put(
        &self,
        key: &str,
        body: impl Into<Bytes>,
        precondition: &Precondition,
    ) -> Result<VersionedObject, StoreError> {
        let body = body.into();
        let version =
            patiently(|time| self.sleep(time), || self.put_once(key, body.clone(), precondition.clone())).await?;
        Ok(VersionedObject::new(body, version))
    }

    pub(crate) async fn put_once(
        &self,
        key: &str,
        body: Bytes,
        precondition: Precondition,
    ) -> Result<Version, StoreError> {
        // The create counts as unsettled until its answer arrives, so a create whose future is dropped stays
        // counted. A late update needs no count, because its object has changed or is gone.
        let creates = usize::from(precondition == Precondition::Absent);
        self.unsettled(key, |unsettled| unsettled + creates);
        self.with_ledger(|ledger| ledger.unanswered_creates += creates);
        let answer = self.answered(self.store.put(key, body, &precondition)).await;
        if answer.is_ok() {
            self.with_ledger(|ledger| ledger.unanswered_creates -= creates);
        }
        let answer = self.noted(key, answer);
        if answer.as_ref().map_or_else(|error| error.kind() != StoreErrorKind::Ambiguous, |_| true) {
            self.unsettled(key, |unsettled| unsettled - creates);
        }
        answer
    }

    /// Makes a write that the store has to accept, because its condition holds.
    ///
    /// Nobody else writes to the object. If the write is answered Conflict and is there all the same, a proxy has
    /// repeated it, and an election would find its own write too. A store that has accepted no such write yet is not
    /// believed, because it may answer every write falsely.
    pub(crate) async fn put_rightly(
        &self,
        key: &str,
        body: impl Into<Bytes>,
        precondition: &Precondition,
    ) -> Finding<VersionedObject> {
        let body = body.into();
        let error = match self.put(key, body.clone(), precondition).await {
            Ok(written) => {
                self.with_ledger(|ledger| ledger.has_accepted = true);
                return Ok(written);
            }
            Err(error) if error.kind() == StoreErrorKind::Conflict => error,
            Err(error) => return Err(error.into()),
        };
        let has_accepted = self.with_ledger(|ledger| ledger.has_accepted);
        let what = match (precondition, self.get(key).await?) {
            (Precondition::Absent, None) => "a create of a missing object".to_owned(),
            (Precondition::Matches(version), Some(found)) if found.version == *version => {
                format!("an update that names the current version {version}")
            }
            (_, Some(found)) if found.body == body && has_accepted => return Ok(found),
            _ => return Err(error.into()),
        };
        Err(Stopped::Refused(format!("{what} is refused: {}", Refusal::from(error).text)))
    }

    /// Deletes by a version, and repeats a deletion that the store rejects for now.
    pub(crate) async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        patiently(|time| self.sleep(time), || self.call(key, self.store.delete(key, Some(expected)))).await
    }

    pub(crate) async fn pause(&self, asked: Option<Duration>) {
        self.sleep(asked.unwrap_or(PAUSE)).await;
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        let clock = &self.config.clock;
        clock.sleep_until(clock.now() + time).await;
    }

    /// One request, bounded in time.
    pub(crate) async fn call<T>(
        &self,
        key: &str,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = self.answered(request).await;
        self.noted(key, answer)
    }

    async fn answered<T>(
        &self,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Result<T, StoreError>, NoAnswer> {
        let ProbeConfig { clock, request_timeout, .. } = &*self.config;
        self.with_ledger(|ledger| ledger.requests += 1);
        let limit = TimeLimit::new(*request_timeout).on_clock(Arc::clone(clock)).of_setting(REQUEST_TIMEOUT);
        let sent = clock.now();
        let answer = limit.answer(request).await?;
        let latency = clock.now().saturating_since(sent);
        self.with_ledger(|ledger| ledger.latencies.push(latency));
        Ok(answer)
    }

    fn noted<T>(&self, key: &str, answer: Result<Result<T, StoreError>, NoAnswer>) -> Result<T, StoreError> {
        let answer = answer.unwrap_or_else(|silence| Err(silence.of(&self.store.describe(key))));
        let error = answer.as_ref().err().filter(|error| error.kind() != StoreErrorKind::Conflict);
        let kind = error.map(StoreError::kind);
        self.with_ledger(|ledger| {
            ledger.fails = error.is_some();
            if let Some(error) = error {
                ledger.last_error = Some(one_line(&error.to_string(), MOST_OF_A_TEXT));
            }
            ledger.has_answered |= !matches!(kind, Some(StoreErrorKind::Rejected | StoreErrorKind::Ambiguous));
            ledger.clear += usize::from(kind != Some(StoreErrorKind::Ambiguous));
        });
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
