//! The effects of the state machine of sessions, as a run carries them out.

use std::sync::Arc;

use super::log;
use super::request;
use super::run::Run;
use crate::clock::LocalInstant;
use crate::election::{self, BeginReason, Term};
use crate::elector::term::OpenTerm;
use crate::leadership::window::Window;
use crate::leadership::{Leadership, TermListener};
use crate::session::{Effect, Fact, Input, LockId};
use crate::store::StoreErrorKind;

impl Run<'_> {
    pub(super) fn carry_out(&mut self, now: LocalInstant, effect: Effect) {
        let place = self.shared.settings.place.clone();
        match effect {
            Effect::Own { session, request } => {
                let key = place.session(&session);
                let input = |answer| Input::Own { session, answer };
                self.requests.push(request::about_record(place, key, request, now, input));
            }
            Effect::Peer { session, request } => {
                self.requests.push(request::about_peer(place, session, request, now));
            }
            Effect::ListSessions => self.requests.push(request::list_sessions(place, now)),
            Effect::Lock { lock, request } => {
                self.report(lock, |report| report.sending(request.operation()));
                let Some(slot) = self.slot(lock) else { return };
                let key = place.lock(&slot.seat.name);
                let input = move |answer| Input::Lock { lock, answer };
                self.requests.push(request::about_record(place, key, request, now, input));
            }
            Effect::ListLocks => self.requests.push(request::list_locks(place, now)),
            Effect::Start { lock, term, reason } => self.start(lock, term, reason),
            Effect::Extend { valid_until } => self.extend(valid_until),
            Effect::Stop { lock, fencing_token, reason, .. } => {
                self.leads -= 1;
                self.view.leads(self.leads);
                let Some(slot) = self.slot(lock) else { return };
                if let Some(open) = &slot.open {
                    open.leadership().close();
                }
                self.report(lock, |report| report.stopped(fencing_token, reason));
                if let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) {
                    open.stop();
                }
            }
            Effect::DropWork { lock } => {
                let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) else { return };
                open.drop_work();
                let fencing_token = open.leadership().fencing_token();
                self.report(lock, |report| report.dropped_work(fencing_token));
                self.work_is_due = true;
            }
            Effect::Abandon { lock } => {
                let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) else { return };
                let fencing_token = open.leadership().fencing_token();
                self.report(lock, |report| report.abandoned_work(fencing_token));
                if let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) {
                    open.abandon();
                }
            }
            Effect::Finished { lock, outcome } => {
                let Some(slot) = self.slot(lock) else { return };
                slot.finish(outcome);
                let next = slot.heir.take().unwrap_or_else(|| Arc::clone(&slot.seat));
                self.admit(now, &next);
            }
            Effect::Ended => self.ended = true,
            Effect::Fact(fact) => self.tell(now, fact),
        }
    }

    fn start(&mut self, lock: LockId, term: Term, reason: BeginReason) {
        self.leads += 1;
        self.view.began(self.leads, &reason);
        let clock = Arc::clone(&self.shared.settings.clock);
        let window = Arc::clone(self.window.get_or_insert_with(|| Arc::new(Window::new(&term))));
        let Some(seat) = self.slot(lock).map(|slot| Arc::clone(&slot.seat)) else { return };
        let listener: Arc<dyn TermListener> = Arc::clone(&seat) as _;
        let leadership = Leadership::of_session(term.fencing_token, window, clock, Arc::downgrade(&listener));
        self.report(lock, |report| report.started(&leadership, reason));
        let Some(slot) = self.slot(lock) else { return };
        let Some(start) = slot.candidacy.as_ref().map(|candidacy| candidacy.work.prepare()) else { return };
        let open = OpenTerm::start(leadership, start, seat.on_stop.clone(), seat.status.clone());
        seat.remember_work(open.work());
        slot.open = Some(open);
    }

    fn extend(&mut self, valid_until: LocalInstant) {
        let settings = &self.shared.settings;
        let sent_at = valid_until - settings.rules.election.renew_deadline;
        let term = Term { fencing_token: 0, sent_at, valid_until };
        self.view.renewed(settings.clock.now());
        let Some(window) = &self.window else { return };
        if !window.extend(&term, &*settings.clock) {
            let now = settings.clock.now();
            self.handle(now, Input::Expired);
        }
    }

    fn tell(&mut self, now: LocalInstant, fact: Fact) {
        match fact {
            Fact::Opened { session } => {
                self.window = None;
                self.view.opened(now, &session);
            }
            Fact::Closed { session, reason } => {
                self.close_window();
                log::closed(&session, reason.as_ref());
                self.deserted.clone().into_iter().for_each(|lock| self.forget_if_deserted(lock));
            }
            Fact::Own(fact) => self.view.own(&fact),
            Fact::PeerSeen { session, since, lease } => self.view.saw_peer(now, &session, since, lease),
            Fact::PeerEnded { session } => self.view.peer_ended(&session),
            Fact::IdentityClash { session } => self.view.identity_clash(now, &session),
            Fact::Acquired { lock, fencing_token } => {
                self.report(lock, |report| report.fact(election::Fact::Acquired { fencing_token }));
            }
            Fact::Released { lock } => self.report(lock, |report| report.fact(election::Fact::Released)),
            Fact::ReleaseGivenUp { lock } => self.report(lock, |report| report.fact(election::Fact::ReleaseGivenUp)),
            Fact::LeaderChanged { lock, leader } => {
                self.report(lock, |report| report.fact(election::Fact::LeaderChanged { leader }));
            }
            Fact::Refused { lock, refusal } => {
                let place = self.shared.settings.place.clone();
                let Some(slot) = self.slot(lock) else { return };
                log::refused(&slot.seat.name, &refusal);
                let name = place.describe_lock(&slot.seat.name);
                let error =
                    crate::LockError::new(StoreErrorKind::Unreadable, "cannot lead lock", name, refusal.to_string());
                self.report(lock, |report| report.failed(now, election::Operation::Get, &error));
            }
        }
    }
}
