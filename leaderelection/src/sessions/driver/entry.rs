//! The part of a lock that its elector and the driver share.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;

use super::common::Common;
use crate::clock::Clock;
use crate::config::callbacks::{LeaderCallbacks, OnStart, OnStop};
use crate::election::RunOutcome;
use crate::elector::listeners::Listeners;
use crate::elector::new_leader::NewLeaderCalls;
use crate::elector::term::EarlierWork;
use crate::elector::terms::Terms;
use crate::elector::work::StartWork;
use crate::handle::observation::RecordedError;
use crate::handle::status::StatusWriter;
use crate::history::keeper::{Keeper, Place};
use crate::leadership::TermListener;
use crate::util::sync::Mutex;

/// One candidacy, until its term is over.
pub(super) struct Candidacy {
    pub(super) work: StartWork,
    pub(super) stand_back: Duration,
    /// Boxed, because an outcome is long, and most candidacies have none yet.
    pub(super) done: oneshot::Sender<Box<RunOutcome>>,
}

/// The orders of an elector that the driver has not read.
#[derive(Default)]
pub(super) struct Orders {
    /// `true` while the elector is in the queue of those with orders.
    pub(super) queued: bool,
    pub(super) candidacy: Option<Box<Candidacy>>,
    /// The end of the candidacy that the driver has.
    pub(super) end: Option<End>,
    /// `true` after the elector was dropped.
    pub(super) gone: bool,
}

/// The reason for which an elector ends its candidacy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The caller has cancelled, and waits for the end.
    Cancelled,
    /// The caller has dropped the future.
    Dropped,
}

impl Orders {
    /// Ends the candidacy, and returns it if the driver has not seen it.
    pub(super) fn end(&mut self, end: End) -> Option<Box<Candidacy>> {
        let unseen = self.candidacy.take();
        // A candidacy that the driver never saw has nothing to end there. Its caller is answered by the drop.
        if unseen.is_none() {
            self.end = Some(end);
        }
        unseen
    }
}

/// The part of a lock that its elector and the driver share.
pub(super) struct LockEntry {
    pub(super) name: Arc<str>,
    pub(super) on_start: Option<Arc<OnStart>>,
    pub(super) on_stop: Option<Arc<OnStop>>,
    pub(super) status: StatusWriter,
    pub(super) new_leader_calls: NewLeaderCalls,
    common: Arc<Common>,
    /// Held by the candidacy of the elector.
    pub(super) turn: tokio::sync::Mutex<()>,
    earlier_work: Mutex<EarlierWork>,
    pub(super) terms: Terms,
    orders: Mutex<Orders>,
}

impl LockEntry {
    pub(super) fn new(name: Arc<str>, callbacks: LeaderCallbacks, common: &Arc<Common>) -> Self {
        let status = StatusWriter::new();
        let LeaderCallbacks { on_start_leading, on_stop_leading, on_new_leader } = callbacks;
        Self {
            name,
            on_start: on_start_leading,
            on_stop: on_stop_leading,
            status,
            new_leader_calls: NewLeaderCalls::new(on_new_leader, &common.pool),
            common: Arc::clone(common),
            turn: tokio::sync::Mutex::default(),
            earlier_work: Mutex::default(),
            terms: Terms::default(),
            orders: Mutex::default(),
        }
    }

    /// The name of the lock in metrics and health checks.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.common.settings.basics.name, self.name)
    }

    pub(super) fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock()
    }

    /// The work of the last term, which may outlive that term.
    pub(super) fn earlier_work(&self) -> EarlierWork {
        self.earlier_work.lock().clone()
    }

    /// Remembers the work of a new term, or the work that another elector of this name has left behind.
    pub(super) fn remember_work(&self, work: EarlierWork) {
        *self.earlier_work.lock() = work;
    }
}

impl Listeners for LockEntry {
    fn name(&self) -> Arc<str> {
        self.full_name().into()
    }

    fn lock_of_session(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn clock(&self) -> &dyn Clock {
        &*self.common.settings.basics.clock
    }

    fn status(&self) -> &StatusWriter {
        &self.status
    }

    /// The errors of the session are those of all its locks.
    fn last_recorded_error(&self) -> Option<Box<RecordedError>> {
        let (own, of_session) = (self.status.last_recorded_error(), self.common.status.last_recorded_error());
        own.into_iter().chain(of_session).max_by_key(|error| error.told_at())
    }

    fn new_leader_calls(&self) -> &NewLeaderCalls {
        &self.new_leader_calls
    }

    fn identity(&self) -> &str {
        &self.common.identity
    }

    fn history(&self) -> Option<&Arc<Keeper>> {
        self.common.settings.basics.history.as_ref()
    }

    fn objects(&self) -> Vec<Place> {
        let place = &self.common.settings.place;
        vec![(place.object().0, place.lock(&self.name))]
    }
}

impl TermListener for LockEntry {
    fn wake(&self) {
        self.common.term_has_news(&self.name);
    }
}

impl std::fmt::Debug for LockEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockEntry").field("name", &self.name).finish_non_exhaustive()
    }
}
