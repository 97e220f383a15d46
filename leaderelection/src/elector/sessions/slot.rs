//! One lock, as the driver of a session sees it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::callbacks::LeaderCallbacks;
use crate::clock::Clock;
use crate::election::{Command, EndReason, RunOutcome};
use crate::elector::new_leader::NewLeaderCalls;
use crate::elector::report::Report;
use crate::elector::term::OpenTerm;
use crate::elector::work::StartWork;
use crate::session::LockId;
use crate::status::StatusWriter;

/// An order of an elector to the driver.
pub(super) enum Order {
    /// There is a further lock.
    Add(Arc<LockSeat>),
    /// An elector competes for one term.
    Compete { lock: LockId, candidacy: Box<Candidacy> },
    /// An elector gives an order about its term or its candidacy.
    Command { lock: LockId, command: Command },
    /// The future of an elector was dropped.
    Dropped { lock: LockId },
}

/// One candidacy, until its term is over.
pub(super) struct Candidacy {
    pub(super) work: StartWork,
    pub(super) stand_back: Duration,
    pub(super) done: oneshot::Sender<RunOutcome>,
}

/// The part of a lock that its elector and the driver share.
#[derive(Debug)]
pub(super) struct LockSeat {
    pub(super) name: Arc<str>,
    pub(super) callbacks: LeaderCallbacks,
    pub(super) status: StatusWriter,
    new_leader_calls: NewLeaderCalls,
}

impl LockSeat {
    pub(super) fn new(name: Arc<str>, callbacks: LeaderCallbacks, status: StatusWriter) -> Self {
        let new_leader_calls = NewLeaderCalls::new(callbacks.on_new_leader.clone());
        Self { name, callbacks, status, new_leader_calls }
    }
}

/// One lock in a run of the driver.
pub(super) struct Slot {
    pub(super) seat: Arc<LockSeat>,
    /// The listeners, from the first candidacy on.
    pub(super) report: Option<Report>,
    pub(super) candidacy: Option<Box<Candidacy>>,
    pub(super) open: Option<OpenTerm>,
    /// The next candidacy, which waits for the end of a candidacy whose future was dropped.
    pub(super) next: Option<Box<Candidacy>>,
}

impl Slot {
    pub(super) fn new(seat: Arc<LockSeat>) -> Self {
        Self { seat, report: None, candidacy: None, open: None, next: None }
    }

    pub(super) fn report(&mut self, clock: &Arc<dyn Clock>) -> &mut Report {
        let Self { seat, report, .. } = self;
        report.get_or_insert_with(|| {
            Report::new(&seat.name, Arc::clone(clock), seat.status.clone(), seat.new_leader_calls.clone())
        })
    }

    /// Ends the candidacy, and tells its elector.
    pub(super) fn finish(&mut self, outcome: RunOutcome) {
        self.open = None;
        if let Some(candidacy) = self.candidacy.take() {
            let _ = candidacy.done.send(outcome);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(report) = &mut self.report {
            report.finished();
        }
        let fencing_token = self.open.as_ref().map(|open| open.leadership.fencing_token());
        self.finish(match fencing_token {
            Some(fencing_token) => RunOutcome::Led { fencing_token, reason: EndReason::Cancelled },
            None => RunOutcome::NeverLed,
        });
    }
}
