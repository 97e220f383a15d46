//! The part of a lock that its elector and the driver share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::callbacks::LeaderCallbacks;
use crate::election::RunOutcome;
use crate::elector::new_leader::{Crew, NewLeaderCalls};
use crate::elector::term::EarlierWork;
use crate::elector::work::StartWork;
use crate::status::StatusWriter;

/// One candidacy, until its term is over.
pub(super) struct Candidacy {
    pub(super) work: StartWork,
    pub(super) stand_back: Duration,
    pub(super) done: oneshot::Sender<RunOutcome>,
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
        if unseen.is_none() {
            self.end = Some(end);
        }
        unseen
    }
}

/// The part of a lock that its elector and the driver share.
pub(super) struct LockSeat {
    pub(super) name: Arc<str>,
    pub(super) callbacks: LeaderCallbacks,
    pub(super) status: StatusWriter,
    pub(super) new_leader_calls: NewLeaderCalls,
    earlier_work: Mutex<EarlierWork>,
    orders: Mutex<Orders>,
}

impl LockSeat {
    pub(super) fn new(name: Arc<str>, callbacks: LeaderCallbacks, crew: &Arc<Crew>) -> Self {
        let (status, _) = StatusWriter::new();
        let new_leader_calls = NewLeaderCalls::by(crew, callbacks.on_new_leader.clone());
        let (earlier_work, orders) = (Mutex::default(), Mutex::default());
        Self { name, callbacks, status, new_leader_calls, earlier_work, orders }
    }

    pub(super) fn orders(&self) -> MutexGuard<'_, Orders> {
        lock(&self.orders)
    }

    /// The work of the last term, which may outlive that term.
    pub(super) fn earlier_work(&self) -> EarlierWork {
        lock(&self.earlier_work).clone()
    }

    /// Takes over the work that another elector of this name has left behind.
    pub(super) fn inherit(&self, work: EarlierWork) {
        *lock(&self.earlier_work) = work;
    }

    /// Marks the work of a new term. The returned guard is to be dropped when that work has ended.
    pub(super) fn track_work(&self) -> tokio_util::sync::DropGuard {
        lock(&self.earlier_work).track()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that could panic runs under the locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for LockSeat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockSeat").field("name", &self.name).finish_non_exhaustive()
    }
}
