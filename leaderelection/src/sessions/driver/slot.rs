//! One lock in a run of the driver.

use std::sync::Arc;

use super::entry::{Candidacy, LockEntry};
use crate::election::{EndReason, Fact, RunOutcome};
use crate::elector::report::Report;
use crate::elector::term::OpenTerm;

/// One lock in a run of the driver, from its first candidacy on.
pub(super) struct Slot {
    pub(super) entry: Arc<LockEntry>,
    report: Option<Report>,
    pub(super) candidacy: Option<Box<Candidacy>>,
    pub(super) open: Option<OpenTerm>,
    /// The next elector of this lock, while a candidacy of an elector that was dropped is winding down.
    pub(super) successor: Option<Arc<LockEntry>>,
}

impl Slot {
    pub(super) fn new(entry: Arc<LockEntry>) -> Self {
        Self { entry, report: None, candidacy: None, open: None, successor: None }
    }

    /// Gives the lock to another elector, which learns what its predecessor knew.
    pub(super) fn pass_on(&mut self, successor: Arc<LockEntry>) {
        self.end_report();
        // The machine announces changes only, and the leader that it has announced may stay for days.
        let leader = successor.status.inherit(&self.entry.status);
        self.entry = successor;
        if leader.is_some() {
            self.report().fact(Fact::LeaderChanged { leader: leader.as_deref().map(str::to_owned) });
        }
    }

    /// The reports of the present elector.
    pub(super) fn report(&mut self) -> &mut Report {
        let Self { entry, report, .. } = self;
        report.get_or_insert_with(|| Report::new(Arc::clone(entry) as _))
    }

    /// Ends the candidacy, and tells its elector.
    pub(super) fn finish(&mut self, outcome: RunOutcome) {
        // The term goes before its outcome is sent, so that the caller finds nothing of it.
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
        // A run that is dropped answers every caller, who would otherwise wait for a driver that is gone.
        let fencing_token = self.open.as_ref().map(|open| open.leadership().fencing_token());
        self.finish(match fencing_token {
            Some(fencing_token) => RunOutcome::Led { fencing_token, reason: EndReason::Cancelled },
            None => RunOutcome::NeverLed,
        });
    }
}
