//! One lock in a run of the driver.

use std::sync::Arc;

use super::seat::{Candidacy, LockSeat};
use crate::election::{EndReason, Fact, RunOutcome};
use crate::elector::report::Report;
use crate::elector::term::OpenTerm;

/// One lock in a run of the driver, from its first candidacy on.
pub(super) struct Slot {
    pub(super) seat: Arc<LockSeat>,
    report: Option<Report>,
    pub(super) candidacy: Option<Box<Candidacy>>,
    pub(super) open: Option<OpenTerm>,
    /// The next elector of this lock, while a candidacy of an elector that was dropped is winding down.
    pub(super) heir: Option<Arc<LockSeat>>,
}

impl Slot {
    pub(super) fn new(seat: Arc<LockSeat>) -> Self {
        Self { seat, report: None, candidacy: None, open: None, heir: None }
    }

    /// Gives the lock to another elector, which learns what its predecessor knew.
    pub(super) fn pass_on(&mut self, heir: Arc<LockSeat>) {
        self.end_report();
        let leader = heir.status.inherit(&self.seat.status);
        self.seat = heir;
        if leader.is_some() {
            self.report().fact(Fact::LeaderChanged { leader: leader.as_deref().map(str::to_owned) });
        }
    }

    /// The reports of the present elector.
    pub(super) fn report(&mut self) -> &mut Report {
        let Self { seat, report, .. } = self;
        report.get_or_insert_with(|| Report::new(Arc::clone(seat) as _))
    }

    /// Ends the candidacy, and tells its elector.
    pub(super) fn finish(&mut self, outcome: RunOutcome) {
        self.open = None;
        if let Some(candidacy) = self.candidacy.take() {
            let _ = candidacy.done.send(Box::new(outcome));
        }
    }

    fn end_report(&mut self) {
        if let Some(mut report) = self.report.take() {
            report.finished();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.end_report();
        let fencing_token = self.open.as_ref().map(|open| open.leadership().fencing_token());
        self.finish(match fencing_token {
            Some(fencing_token) => RunOutcome::Led { fencing_token, reason: EndReason::Cancelled },
            None => RunOutcome::NeverLed,
        });
    }
}
