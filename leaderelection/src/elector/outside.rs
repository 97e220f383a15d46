//! What the outside gets to know: events, answers and errors become logs, metrics, status and callbacks.

use std::sync::Arc;

use super::driver::{Driver, TermRun};
use super::meters::Meters;
use super::request::About;
use super::term::OpenTerm;
use crate::causes::with_causes;
use crate::clock::LocalInstant;
use crate::election::{Answer, Event};
use crate::history::Change;
use crate::leadership::Leadership;
use crate::lock::LockError;
use crate::observation::{LastError, Sighting};
use crate::store::StoreErrorKind;

impl Driver {
    pub(super) fn take_events(&mut self, run: &mut TermRun) {
        while let Some(event) = self.election.next_event() {
            match event {
                Event::Acquired { fencing_token, reason } => {
                    tracing::debug!(fencing_token, %reason, "won the lease");
                    run.acquired = reason;
                }
                Event::Started { fencing_token } => {
                    tracing::info!(fencing_token, reason = %run.acquired, "started leading");
                    let reason = run.acquired.clone();
                    self.remember(Change::StartedLeading { fencing_token, reason });
                    self.open_term(run);
                }
                Event::Stopped { fencing_token, reason } => {
                    tracing::info!(fencing_token, %reason, "stopped leading");
                    if let Some(open) = &run.open {
                        open.leadership.give_up(reason.clone());
                    }
                    if let Some(meter) = &mut run.term_meter {
                        meter.end(&reason);
                    }
                    self.remember(Change::StoppedLeading { fencing_token, reason: reason.clone() });
                    run.outcome.reason = reason;
                    self.status.send_modify(|_| {});
                }
                Event::LeaderChanged { leader } => {
                    tracing::info!(leader, "leader changed");
                    if let Some(leader) = &leader {
                        self.new_leader_calls.call(leader);
                        run.meters.leader_changed();
                    }
                    let at = self.config.clock.wall_time();
                    self.status.send_modify(|status| {
                        let from = std::mem::replace(&mut status.leader, leader.clone());
                        status.history.record(at, Change::LeaderChanged { from, to: leader });
                    });
                }
                Event::Released => tracing::info!("released the lease"),
                Event::ReleaseGivenUp => {
                    tracing::warn!("could not release the lease in time; it runs out by itself");
                }
                Event::IdentityClash => {
                    run.meters.identity_clash();
                    tracing::error!(
                        "another process renews this lock under our identity; give every process an identity of its own"
                    );
                }
                Event::TokensExhausted => tracing::error!(
                    "the lock's leaderTransitions has no successor, so nobody can lead; move to a lock of another name, \
                     and reset the tokens that its resources remember"
                ),
                Event::Vanished => tracing::error!(
                    "the lock's object was deleted; fencing tokens may start again: do not delete a lock in use"
                ),
            }
        }
    }

    /// Reports an answer to whoever watches; changes nothing.
    pub(super) fn take_note(
        &self,
        now: LocalInstant,
        about: &About,
        answer: &Answer,
        error: Option<LockError>,
        meters: &mut Meters,
    ) {
        let at = self.config.clock.wall_time();
        meters.answered(about, answer, now, at);
        let error = error.and_then(|error| {
            log_failure(&error);
            let message = || LastError { at, message: with_causes(&error) };
            (error.kind() != StoreErrorKind::Conflict).then(message)
        });
        self.status.send_if_modified(|status| {
            status.last_error = error.or(status.last_error.take());
            let before = status.sighting.as_ref();
            match (answer, &about.write) {
                (Answer::Read(Ok(Some(found))), _) => {
                    let terms = (&found.record).into();
                    status.sighting = Some(Sighting::new(terms, found.version.clone(), now, before));
                }
                (Answer::Read(Ok(None)), _) => status.sighting = None,
                (Answer::Written(Ok(version)), Some(write)) => {
                    status.sighting = Some(Sighting::new(write.terms, version.clone(), now, before));
                }
                _ => {}
            }
            // Nobody is woken for what is no change of leadership.
            false
        });
    }

    fn remember(&self, change: Change) {
        let at = self.config.clock.wall_time();
        self.status.send_if_modified(|status| {
            status.history.record(at, change);
            false
        });
    }

    fn open_term(&mut self, run: &mut TermRun) {
        let Some(term) = self.election.leading(self.config.clock.now()) else { return };
        run.outcome.fencing_token = Some(term.fencing_token);
        run.term_meter = Some(run.meters.term_started());
        let leadership = Leadership::new(term, Arc::clone(&self.config.clock));
        // Known to everybody before the work can ask.
        self.status.send_modify(|status| status.term = Some(leadership.clone()));
        let on_stop = self.config.callbacks.on_stop_leading.clone();
        let ended = self.earlier_work.track();
        run.open = Some(OpenTerm::start(leadership, run.work.start.take(), on_stop, self.status.clone(), ended));
    }
}

fn log_failure(error: &LockError) {
    let chain = with_causes(error);
    match error.kind() {
        StoreErrorKind::Conflict => tracing::debug!(error = chain, "somebody else wrote the lock first"),
        StoreErrorKind::Fatal | StoreErrorKind::Unreadable => {
            tracing::error!(error = chain, "the lock cannot be used; trying again");
        }
        StoreErrorKind::Rejected | StoreErrorKind::Ambiguous => {
            tracing::warn!(error = chain, "a request to the lock failed; trying again");
        }
    }
}
