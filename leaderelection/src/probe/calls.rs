//! How a probe calls the store: bounded, counted, timed; and how it cleans up.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::check::{Check, CheckKind, Finding, Outcome, Stopped};
use super::config::ProbeConfig;
use super::report::{Latency, ProbeReport};
use crate::clock::LocalInstant;
use crate::contract::{Breach, HONEST_ERRORS};
use crate::patience::{patiently, pause};
use crate::race::Refusal;
use crate::store::{ConditionalStore, Precondition, StoreError, StoreErrorKind, Version, VersionedObject};

const CLEAN_UP_LIMIT: Duration = Duration::from_secs(10);

/// One probe of one store.
pub(super) struct Prober<'a> {
    store: &'a dyn ConditionalStore,
    pub(super) config: &'a ProbeConfig,
    folder: String,
    ledger: Mutex<Ledger>,
}

#[derive(Default)]
struct Ledger {
    requests: usize,
    latencies: Vec<Duration>,
    last_error: Option<String>,
    keys: usize,
    objects: BTreeMap<String, Object>,
}

/// Something that may be in the store because of us.
#[derive(Default)]
struct Object {
    /// Creates whose outcome is not known: they may land after a deletion.
    unsettled: usize,
    swept: bool,
    /// Not worth another try.
    denied: bool,
}

impl<'a> Prober<'a> {
    pub(super) fn new(store: &'a dyn ConditionalStore, config: &'a ProbeConfig) -> Self {
        Self { store, config, folder: config.folder(), ledger: Mutex::default() }
    }

    /// Runs the checks, as far as it makes sense.
    pub(super) async fn run(&self, checks: &mut Vec<Check>) {
        for kind in CheckKind::ALL {
            let check = self.check(kind).await;
            let go_on = !(kind.is_required() && check.outcome == Outcome::Inconclusive);
            checks.push(check);
            self.sweep().await;
            if !go_on {
                break;
            }
        }
        skip_the_rest(checks);
    }

    /// Completes `checks` whose time is up.
    pub(super) fn out_of_time(&self, checks: &mut Vec<Check>) {
        if let Some(&kind) = CheckKind::ALL.get(checks.len()) {
            let last_error = self.with_ledger(|ledger| ledger.last_error.clone());
            let because = last_error.map(|error| format!("; the last error was: {error}")).unwrap_or_default();
            let detail = format!("not finished within {:?}{because}", self.config.time_limit);
            checks.push(Check { kind, outcome: Outcome::Inconclusive, detail });
        }
        skip_the_rest(checks);
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

    async fn check(&self, kind: CheckKind) -> Check {
        const ATTEMPTS: usize = 3;
        let mut attempt = 1;
        loop {
            let (outcome, detail) = match self.attempt(kind).await {
                Ok(seen) => (Outcome::Passed, seen),
                Err(Stopped::Broken(breach)) => (Outcome::Failed, breach.to_string()),
                // Lost answers, and conflicts with nobody that a proxy's retries make, are bad luck once.
                Err(Stopped::Unclear(error))
                    if attempt < ATTEMPTS
                        && matches!(error.kind(), StoreErrorKind::Ambiguous | StoreErrorKind::Conflict) =>
                {
                    attempt += 1;
                    self.sweep().await;
                    self.pause(error.retry_after()).await;
                    continue;
                }
                Err(Stopped::Unclear(error)) if error.kind() == StoreErrorKind::Conflict => {
                    let what = format!("a call that had nothing to conflict with was answered Conflict ({error})");
                    (Outcome::Failed, Breach::new(what, HONEST_ERRORS).to_string())
                }
                Err(Stopped::Unclear(error)) => (Outcome::Inconclusive, Refusal::from(error).text),
            };
            return Check { kind, outcome, detail };
        }
    }

    async fn attempt(&self, kind: CheckKind) -> Finding {
        match kind {
            CheckKind::CreateTwice => self.create_twice().await,
            CheckKind::StaleUpdate => self.stale_update().await,
            CheckKind::UpdateMissing => self.update_missing().await,
            CheckKind::RacingCreators => self.racing_creators().await,
            CheckKind::RacingUpdaters => self.racing_updaters().await,
            CheckKind::StaleDelete => self.stale_delete().await,
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

    /// Deletes what the last check has left, but does not insist.
    pub(super) async fn sweep(&self) {
        for key in self.keys(|object| !object.swept) {
            let removed = async {
                let Some(found) = self.call(&key, self.store.get(&key)).await? else { return Ok(()) };
                self.call(&key, self.store.delete(&key, &found.version)).await
            };
            let removed = removed.await;
            self.swept(&key, removed);
        }
    }

    /// Deletes what the sweeps could not, or what has landed since.
    pub(super) async fn clean_up(&self) {
        let clock = &self.config.clock;
        let insist = async {
            for key in self.keys(|object| !object.denied) {
                let removed = async {
                    let Some(found) = self.get(&key).await? else { return Ok(()) };
                    self.delete(&key, &found.version).await
                };
                let removed = removed.await;
                self.swept(&key, removed);
            }
        };
        tokio::select! {
            biased;
            () = insist => {}
            () = clock.sleep_until(clock.now() + CLEAN_UP_LIMIT) => {}
        }
    }

    fn keys(&self, wanted: impl Fn(&Object) -> bool) -> Vec<String> {
        self.with_ledger(|ledger| {
            ledger.objects.iter().filter(|(_, object)| wanted(object)).map(|(key, _)| key.clone()).collect()
        })
    }

    fn swept(&self, key: &str, removed: Result<(), StoreError>) {
        self.with_ledger(|ledger| {
            let Some(object) = ledger.objects.get_mut(key) else { return };
            object.swept = true;
            object.denied = removed.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Fatal);
            if removed.is_ok() && object.unsettled == 0 {
                ledger.objects.remove(key);
            }
        });
    }

    fn unsettled(&self, key: &str, change: impl Fn(usize) -> usize) {
        self.with_ledger(|ledger| {
            if let Some(object) = ledger.objects.get_mut(key) {
                object.unsettled = change(object.unsettled);
            }
        });
    }

    /// One request, bounded in time.
    async fn call<T>(&self, key: &str, request: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
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

    fn with_ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn skip_the_rest(checks: &mut Vec<Check>) {
    for &kind in &CheckKind::ALL[checks.len()..] {
        checks.push(Check { kind, outcome: Outcome::Skipped, detail: "not tried".to_owned() });
    }
}
