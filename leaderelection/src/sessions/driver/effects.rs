//! Carries out the effects of a step of the state machine.

use std::sync::{Arc, Weak};

use super::log;
use super::request;
use super::run::Run;
use super::shared::LockEntry;
use crate::clock::LocalInstant;
use crate::election::{self, BeginReason, Term};
use crate::leadership::Leadership;
use crate::leadership::window::Window;
use crate::sessions::machine::{Effect, Fact, Input, LockId};
use crate::store::StoreErrorKind;

impl Run<'_> {
    /// Returns the time for the next effect, which is later than `now` if another step was necessary.
    pub(super) fn carry_out(&mut self, now: LocalInstant, effect: Effect) -> LocalInstant {
        let fleet = self.shared.settings.fleet.clone();
        match effect {
            Effect::Own { session, request } => {
                let key = fleet.session_key(&session);
                let input = |answer| Input::Own { session, answer };
                self.requests.push(request::about_record(&fleet, key, request, now, input));
            }
            Effect::Peer { session, request } => {
                self.requests.push(request::about_peer(fleet, session, request, now));
            }
            Effect::ListSessions { from } => self.requests.push(request::list_sessions(fleet, from, now)),
            Effect::Lock { lock, effect } => self.carry_out_for(now, lock, effect),
            Effect::ListLocks { from } => self.requests.push(request::list_locks(fleet, from, now)),
            Effect::Extend(term) => return self.extend(now, term),
            Effect::Ended => self.ended = true,
            Effect::Fact(fact) => self.report(now, fact),
        }
        now
    }

    fn carry_out_for(&mut self, now: LocalInstant, lock: LockId, effect: election::Effect) {
        let Some(lock_run) = self.locks.get_mut(lock.0 as usize).and_then(Option::as_deref_mut) else { return };
        match effect {
            election::Effect::Send(request) => {
                lock_run.term_runner.report.sending(request.operation());
                let fleet = &self.shared.settings.fleet;
                let key = fleet.lock_key(&lock_run.entry.name);
                let input = move |answer| Input::Lock { lock, answer };
                self.requests.push(request::about_record(fleet, key, request, now, input));
            }
            election::Effect::Start { term, reason } => {
                self.leads += 1;
                self.view.meters.leads(self.leads);
                if matches!(reason, BeginReason::Expired { .. }) {
                    self.view.meters.took_over();
                }
                // All terms of a session share its window. So one renewal extends them all, and none is valid without the session (S2).
                let Some(window) = &self.window else { return };
                lock_run.start(term.fencing_token, Arc::clone(window), reason);
            }
            election::Effect::Finished(outcome) => {
                lock_run.finish(outcome);
                if let Some((entry, candidacy)) = lock_run.next.take() {
                    self.admit(now, entry, candidacy);
                }
            }
            effect => {
                if matches!(effect, election::Effect::Stop { .. }) {
                    self.leads -= 1;
                    self.view.meters.leads(self.leads);
                }
                lock_run.term_runner.carry_out(now, effect, &mut self.dropped_work);
            }
        }
    }

    fn extend(&mut self, now: LocalInstant, term: Term) -> LocalInstant {
        let settings = &self.shared.settings;
        self.view.renewed(settings.basics.clock.now());
        let Some(window) = &self.window else { return now };
        // The window may have expired since this step began, and work may have seen that. Then the window must not open
        // again (rule 4). So the window itself decides, and if it refuses, the machine has to learn of the expiry.
        if window.extend(&term, &*settings.basics.clock) {
            self.report_write();
            return now;
        }
        let now = settings.basics.clock.now();
        self.handle(now, Input::Expired);
        now
    }

    /// Reports the session's last committed write to the other members.
    fn report_write(&self) {
        if let (Some((leadership, led)), Some(write)) = (&self.published, self.member.own_write()) {
            led.committed(leadership, write);
        }
    }

    fn report(&mut self, now: LocalInstant, fact: Fact) {
        let fleet = self.shared.settings.fleet.clone();
        match fact {
            Fact::Opened { session, term } => {
                // A new window for each session: work may still hold terms of the last session, which must never become valid again.
                let window = Arc::new(Window::new(&term));
                // This leadership is only for messages. Without a listener, no command through it reaches the session.
                let no_listener = Weak::<LockEntry>::new();
                let (view, clock) = (Window::of_session(Arc::clone(&window)), &self.shared.settings.basics.clock);
                let leadership = Leadership::new(term.fencing_token.into(), view, Arc::clone(clock), no_listener);
                self.published = Some((leadership, self.shared.line.opened(fleet.session_key(&session))));
                self.window = Some(window);
                self.report_write();
                self.view.opened(now, &session);
            }
            Fact::Closed { session, reason, released } => {
                self.close_window();
                if let Some(((_, led), write)) = self.published.take().zip(released) {
                    led.released(write);
                }
                self.shared.line.closed();
                log::closed(&session, reason.as_ref());
                // Locks that name this session are free now, so locks without an elector need no release any more.
                self.orphaned.clone().into_iter().for_each(|lock| self.forget_if_orphaned(lock));
            }
            Fact::LockReleased { count, lock } => {
                if let Some((_, led)) = &self.published {
                    led.let_go(count, lock);
                }
            }
            Fact::PeerFound { session, holder, address } => {
                self.shared.line.add_peer(session, &holder, address.as_deref());
            }
            Fact::Own(fact) => self.view.meters.fact(&fact),
            Fact::PeerSeen { session, since, lease } => self.view.saw_peer(now, &session, since, lease),
            Fact::PeerEnded { session } => {
                self.shared.line.remove_peer(&session);
                self.view.peer_ended(&session);
            }
            Fact::DuplicateIdentity { session } => self.view.duplicate_identity(now, &session),
            Fact::Refused { lock, refusal } => {
                let Some(lock_run) = self.lock_run(lock) else { return };
                log::refused(&lock_run.entry.name, &refusal);
                let name = fleet.describe_lock(&lock_run.entry.name);
                // No request has failed, so without this error, the lock's handle would show none.
                let error =
                    crate::LockError::new(StoreErrorKind::Unreadable, "cannot lead lock", name, refusal.to_string());
                lock_run.term_runner.report.failed(now, election::Operation::Get, &error);
            }
        }
    }
}
