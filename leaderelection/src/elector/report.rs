//! Reports to the outside: the log, the metrics, the status and `on_new_leader`. No decision depends on them.

use std::sync::Arc;

use tracing::Span;

use super::anomalies::Anomaly;
use super::listeners::Listeners;
use super::meters::Meters;
use super::request::{Answered, Asked};
use super::{log, span};
use crate::clock::LocalInstant;
use crate::election::{Answer, BeginReason, Fact, Operation, TermEndReason, WorkEnd};
use crate::handle::history::{HistoryEntry, Loss, Stopped};
use crate::handle::observation::{RecordedError, SessionRenewal, Sighting};
use crate::handle::status::StatusWriter;
use crate::history::EndedTerm;
use crate::history::tracker::HistoryTracker;
use crate::leadership::Leadership;
use crate::lock::LockError;
use crate::lock::job::JobId;
use crate::store::StoreErrorKind;
use crate::term::FencingToken;
use crate::util::last_resort;

/// The reports of one run to the listeners.
#[derive(Debug)]
pub(crate) struct Report {
    meters: Meters,
    /// `true` once the run has ended gracefully.
    finished: bool,
    /// The minute of the last line on standard error; 0 before the first line.
    last_resort: u32,
    /// The span of the open term, if a subscriber wants it. Boxed, because a session has thousands of locks.
    term: Option<Box<Span>>,
    /// What the history of the lock needs, if a history is kept.
    tracker: Option<Box<HistoryTracker>>,
}

impl Report {
    pub(crate) fn new(listeners: Arc<dyn Listeners>) -> Self {
        let tracker = listeners.basics().history.as_ref().map(|_| Box::default());
        Self { meters: Meters::new(listeners), finished: false, last_resort: 0, term: None, tracker }
    }

    fn listeners(&self) -> &dyn Listeners {
        &*self.meters.listeners
    }

    pub(crate) fn share_listeners(&self) -> Arc<dyn Listeners> {
        Arc::clone(&self.meters.listeners)
    }

    pub(crate) fn sending(&self, operation: Operation) {
        log::sending(self.lock(), operation);
        self.meters.sent(operation);
    }

    /// Reports an answer about the lock. Call this before the state machine's step, so that the status shows a record before the
    /// term that follows from it. `session` has the renewals of the session that the record names.
    pub(crate) fn answered(
        &mut self,
        now: LocalInstant,
        asked: &Asked,
        answer: &Answer,
        error: Option<&LockError>,
        noticed: &Anomaly,
        session: Option<Arc<SessionRenewal>>,
    ) {
        self.meters.answered(now, asked, Answered::of(answer));
        match error {
            // A conflict is a normal event in an election, not a failure.
            Some(error) if error.kind() == StoreErrorKind::Conflict => self.log_failure(asked.operation, error),
            Some(error) => self.failed(now, asked.operation, error),
            None => {}
        }
        if let Some((operation, error)) = &noticed.spurious_conflict {
            self.failed(now, *operation, error);
        }
        if noticed.duplicate {
            log::duplicate_identity();
            self.meters.duplicate_identity();
        }
        if let Some(shown) = asked.shown(answer) {
            if let (Some(tracker), Some((record, _))) = (&mut self.tracker, shown) {
                tracker.saw(record);
            }
            self.status().observe(|sighting| {
                let before = sighting.as_ref();
                *sighting = shown.map(|(record, version)| {
                    let mut sighting = Sighting::new(record, version.clone(), now, before);
                    (sighting.of_duplicate, sighting.session) = (noticed.of_duplicate, session);
                    sighting
                });
            });
        }
    }

    /// Reports the number of parts that the leader ignores, if the lock has parts.
    pub(crate) fn left_out(&mut self, parts: Option<usize>) {
        self.meters.left_out(parts);
    }

    pub(crate) fn status(&self) -> &StatusWriter {
        self.listeners().status()
    }

    /// Reports that something is wrong with the lock or its store.
    pub(crate) fn failed(&mut self, now: LocalInstant, operation: Operation, error: &LockError) {
        self.log_failure(operation, error);
        let recorded = RecordedError::new(now, self.listeners().basics().clock.wall_time(), operation, error);
        let minute = u32::try_from(now.saturating_since(LocalInstant::default()).as_secs() / 60).unwrap_or(u32::MAX);
        let minute = minute.saturating_add(1);
        // At most one line a minute, and none for a lock of a session, because the session reports an outage once for all of its locks.
        if self.lock().is_none() && minute > self.last_resort && self.status().needs_a_person(&recorded) {
            self.last_resort = minute;
            last_resort::tell("trying again", recorded.message());
        }
        self.status().fail(recorded);
    }

    fn log_failure(&self, operation: Operation, error: &LockError) {
        self.in_term(|| log::failed(self.lock(), operation, error));
    }

    pub(crate) fn started(&mut self, leadership: &Leadership, reason: BeginReason) {
        let fencing_token = leadership.fencing_token();
        let term = span::begin(self.listeners(), fencing_token, &reason);
        self.term = (!term.is_none()).then(|| Box::new(term));
        self.in_term(|| log::started(self.lock(), fencing_token, &reason));
        self.meters.term_started();
        let at = self.listeners().basics().clock.wall_time();
        let tracker = self.tracker.as_mut();
        let before = tracker.and_then(|tracker| tracker.started(at, self.meters.listeners.identity(), &reason));
        self.add_to_history(before);
        self.status().change(|status| {
            status.history.record(at, HistoryEntry::StartedLeading { fencing_token, reason });
            (status.term, status.work_was_left) = (Some(leadership.clone()), false);
        });
    }

    /// Reports the end of the term, which was noticed at `now`.
    pub(crate) fn stopped(&mut self, now: LocalInstant, leadership: &Leadership, reason: TermEndReason) {
        let fencing_token = leadership.fencing_token();
        self.in_term(|| log::stopped(self.lock(), fencing_token, &reason));
        if let Some(term) = self.term.take() {
            span::end(&term, &reason);
        }
        self.meters.term_ended(&reason);
        // A process that was frozen notices the end late, but the history gets the moment at which the window closed.
        let noticed_after = now.saturating_since(leadership.valid_until());
        let loss = (reason == TermEndReason::RenewDeadline).then(|| {
            let renewed_at = leadership.renewed_at();
            // An error from before the last committed renewal is not the reason for the loss.
            let error = self.listeners().last_recorded_error().filter(|error| error.recorded_at >= renewed_at);
            Loss { noticed_after, error: error.map(|error| error.at(now)) }
        });
        let at = self.listeners().basics().clock.wall_time() - noticed_after;
        let leader = (self.meters.listeners.identity(), fencing_token);
        let ended = self.tracker.as_mut().map(|tracker| tracker.stopped(leader, at, &reason, leadership.result()));
        self.add_to_history(ended);
        let entry = HistoryEntry::StoppedLeading(Box::new(Stopped { fencing_token, reason, loss }));
        self.status().change(|status| status.history.record(at, entry));
    }

    /// Names the job of the candidacy in the history.
    pub(crate) fn for_job(&mut self, job: Option<&JobId>) {
        if let Some(tracker) = &mut self.tracker {
            tracker.job = job.map(ToString::to_string);
        }
    }

    fn add_to_history(&self, ended: Option<EndedTerm>) {
        if let (Some(ended), Some(writer)) = (ended, &self.listeners().basics().history) {
            writer.add(self.listeners().objects(), &ended);
        }
    }

    pub(crate) fn dropped_work(&self, fencing_token: FencingToken, was_frozen: bool) {
        log::dropped_work(self.lock(), fencing_token, was_frozen);
        self.status().change(|status| status.work_was_left = true);
        self.meters.overrun();
    }

    pub(crate) fn abandoned_work(&self, fencing_token: FencingToken) {
        log::abandoned_work(self.lock(), fencing_token);
        self.status().change(|status| status.work_was_left = true);
    }

    /// Reports work that panicked or failed. `error` is the error of failed work; `None` if the caller gets it.
    pub(crate) fn work_ended(&self, end: WorkEnd, error: Option<&str>) {
        match (end, error) {
            (WorkEnd::Panicked, _) => log::work_panicked(self.lock()),
            (WorkEnd::Failed, Some(error)) => log::work_failed(self.lock(), error),
            _ => {}
        }
    }

    pub(crate) fn fact(&mut self, now: LocalInstant, fact: Fact) {
        log::fact(self.lock(), &fact);
        self.meters.fact(&fact);
        match fact {
            // The status shows the reported renewal until the next answer of the lock.
            Fact::WriteReported => self.status().observe(|sighting| {
                if let Some(sighting) = sighting {
                    sighting.on_message(now);
                }
            }),
            Fact::LeaderChanged { leader } => {
                if let Some(leader) = &leader {
                    self.listeners().new_leader_calls().call(leader);
                }
                let at = self.listeners().basics().clock.wall_time();
                self.status().change(|status| {
                    // The holder and the history change together, so that no reader finds a holder without its entry in the history.
                    let to = leader.map(Arc::<str>::from);
                    let from = std::mem::replace(&mut status.holder, to.clone());
                    status.history.record(at, HistoryEntry::LeaderChanged { from, to });
                });
            }
            _ => {}
        }
    }

    /// Logs in the span of the term, if there is one.
    fn in_term(&self, log: impl FnOnce()) {
        self.term.as_deref().unwrap_or(&Span::none()).in_scope(log);
    }

    /// The name of the lock if a session holds it.
    fn lock(&self) -> Option<&str> {
        self.listeners().lock_of_session()
    }

    /// Ends a run gracefully: all queued calls of `on_new_leader` are still made.
    pub(crate) fn finished(&mut self) {
        self.finished = true;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.finished {
            // The caller has dropped the run, and expects no more calls.
            self.listeners().new_leader_calls().forget_waiting();
        }
    }
}
