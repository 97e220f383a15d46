//! The state that a session's electors share with its driver.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{mpsc, watch};

use super::line::Line;
use super::log;
use super::orders::{Order, State};
use super::settings::Settings;
use crate::config::callbacks::{LeaderCallbacks, OnStart, OnStop};
use crate::config::common::SharedConfig;
use crate::elector::listeners::Listeners;
use crate::elector::new_leader::{CallbackPool, NewLeaderCalls};
use crate::elector::term::PreviousWork;
use crate::elector::terms::Terms;
use crate::handle::health::{HealthCheck, Unhealthy};
use crate::handle::observation::RecordedError;
use crate::handle::status::{LeaderHandle, StatusWriter};
use crate::history::writer::Place;
use crate::leadership::TermListener;
use crate::store::check::StoreUnfit;
use crate::util::sync::Mutex;

/// The settings and electors of a session, and the queue of orders and events for its driver.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) identity: Arc<str>,
    pool: Arc<CallbackPool>,
    /// The last error of the session, which the handles of all its locks show.
    pub(super) status: StatusWriter,
    pub(super) line: Line,
    /// The queue to the driver.
    calls: mpsc::UnboundedSender<Call>,
    state: watch::Sender<State>,
    registry: Mutex<Registry>,
    /// `true` while one candidate waits to warn that nobody runs the session, and forever after the warning.
    is_warning_claimed: AtomicBool,
    pub(super) span: tracing::Span,
}

#[derive(Debug, Default)]
struct Registry {
    electors: HashMap<Arc<str>, Arc<LockEntry>>,
    /// Work that outlived its elector, by the name of its lock.
    orphaned: HashMap<Arc<str>, PreviousWork>,
    /// The size of `orphaned` at which work that has ended is removed from it.
    cleanup_at: usize,
}

/// The claim of the candidate that waits to warn. If the candidate is dropped before the warning, another one can claim it.
struct WarningClaim<'a>(&'a AtomicBool);

impl Drop for WarningClaim<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// An entry of the queue to the driver.
pub(super) enum Call {
    /// The term of the lock with this name may have an event.
    Term(Arc<str>),
    /// The elector has an order.
    Order(Arc<LockEntry>, Order),
}

impl Shared {
    /// Creates the state of a session whose driver reads the other end of `calls`.
    pub(super) fn new(settings: Settings, calls: mpsc::UnboundedSender<Call>) -> Self {
        let (prefix, identity) = (settings.fleet.describe(), &settings.rules.election.identity);
        let span = tracing::error_span!(
            "leader_election_session",
            leader_election.name = settings.basics.name,
            leader_election.prefix = prefix,
            leader_election.identity = identity,
        );
        Self {
            identity: identity.as_str().into(),
            settings,
            pool: Arc::default(),
            status: StatusWriter::new(),
            line: Line::new(),
            calls,
            state: watch::Sender::new(State::Idle),
            registry: Mutex::default(),
            is_warning_claimed: AtomicBool::new(false),
            span,
        }
    }

    /// Adds an elector. Returns `false` if another one has its name.
    pub(super) fn join(&self, entry: &Arc<LockEntry>) -> bool {
        let mut registry = self.registry.lock();
        if registry.electors.contains_key(&entry.name) {
            return false;
        }
        // Electors of one name have the same lock, so the next term waits for the work that an earlier elector left (rule 8).
        if let Some(work) = registry.orphaned.remove(&entry.name) {
            *entry.earlier_work.lock() = work;
        }
        registry.electors.insert(Arc::clone(&entry.name), Arc::clone(entry));
        true
    }

    /// Removes an elector that is being dropped.
    pub(super) fn leave(&self, entry: &Arc<LockEntry>) {
        let mut registry = self.registry.lock();
        registry.electors.remove(&entry.name);
        // If a program never uses a name twice, only this keeps the map from growing forever. Many electors may be dropped at once, so
        // entries are checked only when the map has doubled.
        if registry.orphaned.len() >= registry.cleanup_at {
            registry.orphaned.retain(|_, work| !work.has_ended());
            registry.cleanup_at = registry.orphaned.len() * 2 + 1;
        }
        let work = entry.earlier_work.lock().clone();
        if !work.has_ended() {
            registry.orphaned.insert(Arc::clone(&entry.name), work);
        }
        drop(registry);
        if self.is_running() {
            self.order(entry, Order::ElectorDropped);
        }
    }

    /// Passes an order of an elector to the driver. If there is no run, the order waits for the next one.
    pub(super) fn order(&self, entry: &Arc<LockEntry>, order: Order) {
        // Sending fails only if the driver is gone. Then nobody can run the session any more.
        let _ = self.calls.send(Call::Order(Arc::clone(entry), order));
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(*self.state.borrow(), State::Running)
    }

    pub(super) fn set_state(&self, state: State) {
        self.state.send_replace(state);
    }

    /// Waits until the session runs. If nobody runs it for a lease duration, logs that once, because the wait would otherwise look as if
    /// another process led the lock. Cancellation safe.
    pub(super) async fn running(&self) -> Result<(), StoreUnfit> {
        let mut state = self.state.subscribe();
        let mut start =
            pin!(state.wait_for(|state| !matches!(state, State::Idle)).map(|state| match state.as_deref() {
                Ok(State::Unfit(unfit)) => Err(unfit.clone()),
                _ => Ok(()),
            }));
        if let Some(started) = start.as_mut().now_or_never() {
            return started;
        }
        // One candidate waits for all. If each of ten thousand had a timer, the same warning would come ten thousand times.
        if !self.is_warning_claimed.swap(true, Ordering::Relaxed) {
            let claim = WarningClaim(&self.is_warning_claimed);
            let (clock, lease) = (&self.settings.basics.clock, self.settings.rules.election.lease_duration);
            tokio::select! {
                started = start.as_mut() => return started,
                _ = clock.sleep_until(clock.now() + lease) => {}
            }
            // The claim is kept, so that no candidate warns again.
            std::mem::forget(claim);
            self.span.in_scope(|| log::nobody_runs_the_session(lease));
        }
        start.await
    }

    /// Checks every elector.
    pub(super) fn check_health(&self, tolerated_delay: Duration) -> Result<(), Unhealthy> {
        let entries: Vec<_> = self.registry.lock().electors.values().cloned().collect();
        entries.iter().try_for_each(|entry| entry.health_check(tolerated_delay).check())
    }
}

/// The state of one lock that its elector shares with the driver.
pub(super) struct LockEntry {
    pub(super) name: Arc<str>,
    pub(super) on_start: Option<Arc<OnStart>>,
    pub(super) on_stop: Option<Arc<OnStop>>,
    pub(super) status: StatusWriter,
    pub(super) new_leader_calls: NewLeaderCalls,
    pub(super) shared: Arc<Shared>,
    /// Held by the elector's candidacy while the driver may know of that candidacy.
    pub(super) candidacy_lock: tokio::sync::Mutex<()>,
    /// The work of the last term. It may outlive that term and its elector; then the next elector of the name gets it.
    pub(super) earlier_work: Mutex<PreviousWork>,
    pub(super) terms: Terms,
}

impl LockEntry {
    pub(super) fn new(name: Arc<str>, callbacks: LeaderCallbacks, shared: &Arc<Shared>) -> Self {
        let on_stop = callbacks.at_the_end();
        let LeaderCallbacks { on_start_leading, on_new_leader, .. } = callbacks;
        Self {
            name,
            on_start: on_start_leading,
            on_stop,
            status: StatusWriter::new(),
            new_leader_calls: NewLeaderCalls::new(on_new_leader, &shared.pool),
            shared: Arc::clone(shared),
            candidacy_lock: tokio::sync::Mutex::default(),
            earlier_work: Mutex::default(),
            terms: Terms::default(),
        }
    }

    pub(super) fn handle(&self) -> LeaderHandle {
        let Self { shared, status, .. } = self;
        let (identity, clock) = (Arc::clone(&shared.identity), Arc::clone(&shared.settings.basics.clock));
        LeaderHandle::new(status.watch(), identity, clock, None, Some(shared.status.watch()))
    }

    pub(super) fn health_check(&self, tolerated_delay: Duration) -> HealthCheck {
        let lease_duration = self.shared.settings.rules.election.lease_duration;
        HealthCheck::new(&self.handle(), self.full_name(), lease_duration, tolerated_delay)
    }

    /// The name of the lock in metrics and health checks.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.shared.settings.basics.name, self.name)
    }
}

impl Listeners for LockEntry {
    fn term_listener(self: Arc<Self>) -> Weak<dyn TermListener> {
        let listener: Arc<dyn TermListener> = self;
        Arc::downgrade(&listener)
    }

    fn name(&self) -> Arc<str> {
        self.full_name().into()
    }

    fn lock_of_session(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn basics(&self) -> &SharedConfig {
        &self.shared.settings.basics
    }

    fn status(&self) -> &StatusWriter {
        &self.status
    }

    /// The last error of the lock or of the session, whichever is newer.
    fn last_recorded_error(&self) -> Option<Box<RecordedError>> {
        let (own, of_session) = (self.status.last_recorded_error(), self.shared.status.last_recorded_error());
        own.into_iter().chain(of_session).max_by_key(|error| error.recorded_at)
    }

    fn on_stop(&self) -> Option<Arc<OnStop>> {
        self.on_stop.clone()
    }

    fn new_leader_calls(&self) -> &NewLeaderCalls {
        &self.new_leader_calls
    }

    fn identity(&self) -> &str {
        &self.shared.identity
    }

    fn objects(&self) -> Vec<Place> {
        let fleet = &self.shared.settings.fleet;
        vec![(fleet.store(), fleet.lock_key(&self.name))]
    }
}

impl TermListener for LockEntry {
    fn wake(&self) {
        let _ = self.shared.calls.send(Call::Term(Arc::clone(&self.name)));
    }
}

impl std::fmt::Debug for LockEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockEntry").field("name", &self.name).finish_non_exhaustive()
    }
}
