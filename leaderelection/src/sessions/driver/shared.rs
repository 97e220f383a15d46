//! The part of a session that its electors share with its driver.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::line::Line;
use super::log;
use super::orders::Orders;
use super::settings::Settings;
use crate::config::callbacks::{LeaderCallbacks, OnStart, OnStop};
use crate::config::common::Basics;
use crate::elector::listeners::Listeners;
use crate::elector::new_leader::{CallbackPool, NewLeaderCalls};
use crate::elector::term::EarlierWork;
use crate::elector::terms::Terms;
use crate::handle::health::{HealthCheck, Unhealthy};
use crate::handle::observation::RecordedError;
use crate::handle::status::{LeaderHandle, StatusWriter};
use crate::history::keeper::Place;
use crate::leadership::TermListener;
use crate::store::check::StoreUnfit;
use crate::util::sync::Mutex;

/// The settings and the electors of a session, and the way of orders and news to its driver.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) identity: Arc<str>,
    pool: Arc<CallbackPool>,
    /// The errors of the session, which are those of all its locks.
    pub(super) status: StatusWriter,
    pub(super) line: Line,
    /// Rings when the driver has something to attend to.
    bell: Notify,
    /// The names of the locks whose terms have news.
    news: Mutex<VecDeque<Arc<str>>>,
    registry: Mutex<Registry>,
    /// The refusal of the store in the last run.
    pub(super) unfit: Mutex<Option<StoreUnfit>>,
    /// `true` while a candidate watches whether anybody runs the session, and after it has warned.
    has_watchman: AtomicBool,
    pub(super) span: tracing::Span,
}

#[derive(Debug, Default)]
struct Registry {
    electors: HashMap<Arc<str>, Arc<LockEntry>>,
    /// The work that outlived its elector.
    left_behind: HashMap<Arc<str>, EarlierWork>,
    /// The number of these at which those that have ended are forgotten.
    most_left_behind: usize,
    /// `true` while the session runs. Orders that are given meanwhile are in the queue.
    runs: bool,
    queue: VecDeque<Arc<LockEntry>>,
}

/// The watch of one candidate. Another one may take its place when it ends.
struct Watch<'a>(&'a AtomicBool);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The reason for which the driver attends to a lock.
#[derive(Debug)]
pub(super) enum Call {
    /// The term of the lock of this name may have news.
    Term(Arc<str>),
    /// The elector has orders.
    Orders(Arc<LockEntry>),
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        let (prefix, identity) = (settings.place.describe(), &settings.rules.election.identity);
        let span = tracing::error_span!("session", name = settings.basics.name, prefix, identity);
        Self {
            identity: identity.as_str().into(),
            settings,
            pool: Arc::default(),
            status: StatusWriter::new(),
            line: Line::new(),
            bell: Notify::new(),
            news: Mutex::default(),
            registry: Mutex::default(),
            unfit: Mutex::default(),
            has_watchman: AtomicBool::new(false),
            span,
        }
    }

    /// Adds an elector. Returns `false` if there is an elector of this name.
    pub(super) fn join(&self, entry: &Arc<LockEntry>) -> bool {
        let mut registry = self.registry.lock();
        if registry.electors.contains_key(&entry.name) {
            return false;
        }
        // A name is one lock, whoever holds the elector, so its next term waits for the work of the last (rule 8).
        if let Some(work) = registry.left_behind.remove(&entry.name) {
            *entry.earlier_work.lock() = work;
        }
        registry.electors.insert(Arc::clone(&entry.name), Arc::clone(entry));
        true
    }

    /// Removes an elector that is dropped.
    pub(super) fn leave(&self, entry: &Arc<LockEntry>) {
        let mut registry = self.registry.lock();
        registry.electors.remove(&entry.name);
        // Names may be used once each, and the map must not grow with them. Many electors may be dropped at once, so not each drop
        // looks at all.
        if registry.left_behind.len() >= registry.most_left_behind {
            registry.left_behind.retain(|_, work| !work.has_ended());
            registry.most_left_behind = registry.left_behind.len() * 2 + 1;
        }
        let work = entry.earlier_work.lock().clone();
        if !work.has_ended() {
            registry.left_behind.insert(Arc::clone(&entry.name), work);
        }
        drop(registry);
        self.order(entry, |orders| orders.gone = true);
    }

    /// Changes the orders of an elector, and tells the driver.
    pub(super) fn order<T>(&self, entry: &Arc<LockEntry>, change: impl FnOnce(&mut Orders) -> T) -> T {
        let mut registry = self.registry.lock();
        // The registry is always locked before the orders of an entry, so that no two threads wait for each other.
        let mut orders = entry.orders.lock();
        let output = change(&mut orders);
        // Without a run, the orders stay with the elector: the next run asks all electors for theirs.
        if registry.runs && !std::mem::replace(&mut orders.queued, true) {
            registry.queue.push_back(Arc::clone(entry));
            self.bell.notify_one();
        }
        output
    }

    /// The next lock to attend to. The news of terms come first. Cancellation safe.
    pub(super) async fn next_call(&self) -> Call {
        loop {
            if let Some(call) = self.call() {
                return call;
            }
            self.bell.notified().await;
        }
    }

    fn call(&self) -> Option<Call> {
        // The end of a term may free the place for the very order that waits.
        if let Some(lock) = self.news.lock().pop_front() {
            return Some(Call::Term(lock));
        }
        let mut registry = self.registry.lock();
        let entry = registry.queue.pop_front()?;
        entry.orders.lock().queued = false;
        Some(Call::Orders(entry))
    }

    /// Puts all orders into the queue that were given before the session ran.
    pub(super) fn begin_run(&self) {
        let mut registry = self.registry.lock();
        let entries: VecDeque<_> = registry.electors.values().cloned().collect();
        entries.iter().for_each(|entry| entry.orders.lock().queued = true);
        (registry.runs, registry.queue) = (true, entries);
        // News of terms that the last run has left open mean nothing to the machine of this one.
        self.news.lock().clear();
    }

    /// Answers the candidates that the driver has not seen. A candidate that comes later waits for the next run.
    pub(super) fn end_run(&self) {
        let mut registry = self.registry.lock();
        // Under the lock that takes the queue: a later order then waits for the next run, and none is lost between.
        registry.runs = false;
        let queue = std::mem::take(&mut registry.queue);
        drop(registry);
        for entry in queue {
            let candidacy = {
                let mut orders = entry.orders.lock();
                orders.queued = false;
                orders.candidacy.take()
            };
            // The caller's code is dropped outside of the lock.
            drop(candidacy);
        }
    }

    /// Returns a wait for `cancel` that says after a whole lease duration that nobody runs the session: the silence would look
    /// like a lock that another process leads. One candidate of the session has it, while the session does not run.
    pub(super) fn watchman<'a>(&'a self, cancel: &'a CancellationToken) -> Option<BoxFuture<'a, ()>> {
        // A timer for each of ten thousand candidates would say the same thing ten thousand times.
        if self.registry.lock().runs || self.has_watchman.swap(true, Ordering::Relaxed) {
            return None;
        }
        let watch = Watch(&self.has_watchman);
        let (clock, lease) = (&self.settings.basics.clock, self.settings.rules.election.lease_duration);
        Some(Box::pin(async move {
            tokio::select! {
                () = cancel.cancelled() => return,
                _ = clock.sleep_until(clock.now() + lease) => {}
            }
            if self.registry.lock().runs {
                drop(watch);
            } else {
                // Nobody says it again.
                std::mem::forget(watch);
                self.span.in_scope(|| log::nobody_runs_the_session(lease));
            }
            cancel.cancelled().await;
        }))
    }

    /// Checks every elector.
    pub(super) fn check_health(&self, tolerated_delay: Duration) -> Result<(), Unhealthy> {
        let entries: Vec<_> = self.registry.lock().electors.values().cloned().collect();
        entries.iter().try_for_each(|entry| entry.health_check(tolerated_delay).check())
    }
}

/// The part of a lock that its elector and the driver share.
pub(super) struct LockEntry {
    pub(super) name: Arc<str>,
    pub(super) on_start: Option<Arc<OnStart>>,
    pub(super) on_stop: Option<Arc<OnStop>>,
    pub(super) status: StatusWriter,
    pub(super) new_leader_calls: NewLeaderCalls,
    pub(super) shared: Arc<Shared>,
    /// Held by the candidacy of the elector.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// The work of the last term, which may outlive that term, or the work that another elector of this name has left behind.
    pub(super) earlier_work: Mutex<EarlierWork>,
    pub(super) terms: Terms,
    pub(super) orders: Mutex<Orders>,
}

impl LockEntry {
    pub(super) fn new(name: Arc<str>, callbacks: LeaderCallbacks, shared: &Arc<Shared>) -> Self {
        let LeaderCallbacks { on_start_leading, on_stop_leading, on_new_leader } = callbacks;
        Self {
            name,
            on_start: on_start_leading,
            on_stop: on_stop_leading,
            status: StatusWriter::new(),
            new_leader_calls: NewLeaderCalls::new(on_new_leader, &shared.pool),
            shared: Arc::clone(shared),
            turn: tokio::sync::Mutex::default(),
            earlier_work: Mutex::default(),
            terms: Terms::default(),
            orders: Mutex::default(),
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
    fn name(&self) -> Arc<str> {
        self.full_name().into()
    }

    fn lock_of_session(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn basics(&self) -> &Basics {
        &self.shared.settings.basics
    }

    fn status(&self) -> &StatusWriter {
        &self.status
    }

    /// The errors of the session are those of all its locks.
    fn last_recorded_error(&self) -> Option<Box<RecordedError>> {
        let (own, of_session) = (self.status.last_recorded_error(), self.shared.status.last_recorded_error());
        own.into_iter().chain(of_session).max_by_key(|error| error.told_at)
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
        let place = &self.shared.settings.place;
        vec![(place.object().0, place.lock(&self.name))]
    }
}

impl TermListener for LockEntry {
    fn wake(&self) {
        self.shared.news.lock().push_back(Arc::clone(&self.name));
        // One ring is enough for many locks: the driver takes all news before it waits again.
        self.shared.bell.notify_one();
    }
}

impl std::fmt::Debug for LockEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockEntry").field("name", &self.name).finish_non_exhaustive()
    }
}
