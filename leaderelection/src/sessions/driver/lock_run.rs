//! One lock in one run of the driver.

use std::sync::Arc;

use super::orders::Candidacy;
use super::shared::LockEntry;
use crate::clock::LocalInstant;
use crate::election::{BeginReason, Fact, Input, RunOutcome, TermEndReason};
use crate::elector::anomalies::Anomalies;
use crate::elector::term_runner::TermRunner;
use crate::leadership::window::Window;

/// One lock in one run of the driver, from its first candidacy on.
pub(super) struct LockRun {
    pub(super) entry: Arc<LockEntry>,
    pub(super) term_runner: TermRunner,
    pub(super) anomalies: Anomalies,
    pub(super) candidacy: Option<Box<Candidacy>>,
    /// The next candidacy for this lock. It waits until the current one, which was dropped, has ended.
    pub(super) next: Option<(Arc<LockEntry>, Box<Candidacy>)>,
}

impl LockRun {
    pub(super) fn new(entry: Arc<LockEntry>) -> Self {
        let term_runner = TermRunner::new(Arc::clone(&entry) as _);
        Self { entry, term_runner, anomalies: Anomalies::default(), candidacy: None, next: None }
    }

    /// Passes the lock to another elector, which inherits the observations of the last one.
    pub(super) fn change_elector(&mut self, now: LocalInstant, successor: Arc<LockEntry>) {
        self.term_runner.report.finished();
        self.term_runner = TermRunner::new(Arc::clone(&successor) as _);
        // The machine reports a leader only once, and that leader may stay for days. So the successor gets this report again.
        let leader = successor.status.inherit(&self.entry.status);
        self.entry = successor;
        if leader.is_some() {
            self.term_runner.report.fact(now, Fact::LeaderChanged { leader: leader.as_deref().map(str::to_owned) });
        }
    }

    /// Starts the work of a term in the window of its session.
    pub(super) fn start(&mut self, fencing_token: u64, session: Arc<Window>, reason: BeginReason) {
        let Some(candidacy) = &self.candidacy else { return };
        let work = self.term_runner.start(fencing_token, Window::of_session(session), reason, &candidacy.work);
        // Kept in the entry, because work may outlive this run, and the next candidacy waits for that work (rule 8).
        *self.entry.earlier_work.lock() = work;
    }

    /// Returns the next event of the term, or else the end of work that outlived its candidacy. The machine begins no other term of the
    /// lock before it knows of that end (rule 8).
    pub(super) fn next_event(&self) -> Option<Input> {
        let outlived = || self.entry.earlier_work.lock().take_end().map(Input::WorkEnded);
        self.term_runner.next_event().or_else(outlived)
    }

    /// Ends the candidacy, and notifies its elector.
    pub(super) fn finish(&mut self, outcome: RunOutcome) {
        // The term is removed first, so that a caller who has the outcome no longer sees the term.
        self.term_runner.open = None;
        if let Some(candidacy) = self.candidacy.take() {
            let _ = candidacy.done.send(Box::new(outcome));
        }
    }
}

impl Drop for LockRun {
    fn drop(&mut self) {
        self.term_runner.report.finished();
        // The run may have been dropped. Without an outcome, the caller would wait for a driver that is gone.
        let fencing_token = self.term_runner.open.as_ref().map(|open| open.leadership().fencing_token());
        self.finish(match fencing_token {
            Some(fencing_token) => RunOutcome::Led { fencing_token, reason: TermEndReason::Cancelled },
            None => RunOutcome::NeverLed,
        });
    }
}
