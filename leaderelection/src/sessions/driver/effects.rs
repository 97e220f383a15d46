//! Carries out the effects of the state machine of sessions.

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
    pub(super) fn carry_out(&mut self, now: LocalInstant, effect: Effect) {
        let place = self.shared.settings.place.clone();
        match effect {
            Effect::Own { session, request } => {
                let key = place.session(&session);
                let input = |answer| Input::Own { session, answer };
                self.requests.push(request::about_record(&place, key, request, now, input));
            }
            Effect::Peer { session, request } => {
                self.requests.push(request::about_peer(place, session, request, now));
            }
            Effect::ListSessions { from } => self.requests.push(request::list_sessions(place, from, now)),
            Effect::Lock { lock, effect } => self.carry_out_for(now, lock, effect),
            Effect::ListLocks { from } => self.requests.push(request::list_locks(place, from, now)),
            Effect::Extend(term) => self.extend(term),
            Effect::Ended => self.ended = true,
            Effect::Fact(fact) => self.tell(now, fact),
        }
    }

    fn carry_out_for(&mut self, now: LocalInstant, lock: LockId, effect: election::Effect) {
        let Some(slot) = self.slots.get_mut(lock.0 as usize).and_then(Option::as_deref_mut) else { return };
        match effect {
            election::Effect::Send(request) => {
                slot.term_runner.report.sending(request.operation());
                let place = &self.shared.settings.place;
                let key = place.lock(&slot.entry.name);
                let input = move |answer| Input::Lock { lock, answer };
                self.requests.push(request::about_record(place, key, request, now, input));
            }
            election::Effect::Start { term, reason } => {
                self.leads += 1;
                self.view.meters.leads(self.leads);
                if matches!(reason, BeginReason::Expired { .. }) {
                    self.view.meters.took_over();
                }
                // All terms of a session share its window: one renewal extends all, and none is valid without the session
                // (S2).
                let Some(window) = &self.window else { return };
                slot.start(term.fencing_token, Arc::clone(window), reason);
            }
            election::Effect::Finished(outcome) => {
                slot.finish(outcome);
                if let Some((entry, candidacy)) = slot.next.take() {
                    self.admit(now, entry, candidacy);
                }
            }
            effect => {
                if matches!(effect, election::Effect::Stop { .. }) {
                    self.leads -= 1;
                    self.view.meters.leads(self.leads);
                }
                slot.term_runner.carry_out(now, effect, &mut self.dropped_work);
            }
        }
    }

    fn extend(&mut self, term: Term) {
        let settings = &self.shared.settings;
        self.view.renewed(settings.basics.clock.now());
        let Some(window) = &self.window else { return };
        // Work may have seen the window closed since this step began. A closed window must stay closed (rule 4), so the window decides,
        // and the machine takes another step.
        if window.extend(&term, &*settings.basics.clock) {
            self.tell_of_write();
        } else {
            let now = settings.basics.clock.now();
            self.handle(now, Input::Expired);
        }
    }

    /// Notifies the other members of the session's last write.
    fn tell_of_write(&self) {
        if let (Some((leadership, led)), Some(write)) = (&self.reported, self.member.own_write()) {
            led.committed(leadership, write);
        }
    }

    fn tell(&mut self, now: LocalInstant, fact: Fact) {
        let place = self.shared.settings.place.clone();
        match fact {
            Fact::Opened { session, term } => {
                // Each session has its own window: terms of the last session may still be held, and must never become valid again.
                let window = Arc::new(Window::new(&term));
                // Nobody can end a session through this value.
                let nobody = Weak::<LockEntry>::new();
                let (view, clock) = (Window::of_session(Arc::clone(&window)), &self.shared.settings.basics.clock);
                let leadership = Leadership::new(term.fencing_token.into(), view, Arc::clone(clock), nobody);
                self.reported = Some((leadership, self.shared.line.opened(place.session(&session))));
                self.window = Some(window);
                self.tell_of_write();
                self.view.opened(now, &session);
            }
            Fact::Closed { session, reason, released } => {
                self.close_window();
                if let Some(((_, led), write)) = self.reported.take().zip(released) {
                    led.released(write);
                }
                self.shared.line.closed();
                log::closed(&session, reason.as_ref());
                // Records that name this session no longer have an effect, so nobody has to release them.
                self.orphaned.clone().into_iter().for_each(|lock| self.forget_if_orphaned(lock));
            }
            Fact::LockReleased { count, lock } => {
                if let Some((_, led)) = &self.reported {
                    led.let_go(count, lock);
                }
            }
            Fact::PeerFound { session, holder, address } => {
                self.shared.line.found(session, &holder, address.as_deref());
            }
            Fact::Own(fact) => self.view.meters.fact(&fact),
            Fact::PeerSeen { session, since, lease } => self.view.saw_peer(now, &session, since, lease),
            Fact::PeerEnded { session } => {
                self.shared.line.lost(&session);
                self.view.peer_ended(&session);
            }
            Fact::DuplicateIdentity { session } => self.view.duplicate_identity(now, &session),
            Fact::Refused { lock, refusal } => {
                let Some(slot) = self.slot(lock) else { return };
                log::refused(&slot.entry.name, &refusal);
                let name = place.describe_lock(&slot.entry.name);
                // No request has failed, so without this error, the lock's handle would show none.
                let error =
                    crate::LockError::new(StoreErrorKind::Unreadable, "cannot lead lock", name, refusal.to_string());
                slot.term_runner.report.failed(now, election::Operation::Get, &error);
            }
        }
    }
}
