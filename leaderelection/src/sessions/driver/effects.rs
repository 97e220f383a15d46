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
use crate::sessions::machine::{Effect, Fact, Input, LockId};
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
                let key = place.lock(&slot.entry.name);
                let input = move |answer| Input::Lock { lock, answer };
                self.requests.push(request::about_record(place, key, request, now, input));
            }
            Effect::ListLocks => self.requests.push(request::list_locks(place, now)),
            Effect::Start { lock, term, reason } => self.start(lock, term, reason),
            Effect::Extend { valid_until } => self.extend(valid_until),
            Effect::Stop { lock, reason, .. } => {
                self.leads -= 1;
                self.view.leads(self.leads);
                let open = self.slot(lock).and_then(|slot| slot.open.as_ref());
                let Some(leadership) = open.map(|open| open.leadership().clone()) else { return };
                // Rule 8: leadership ends before anything is reported or sent.
                leadership.close();
                self.report(lock, |report| report.stopped(now, &leadership, reason));
                // The work may have ended before, and then `on_stop_leading` is called here: after the report.
                if let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) {
                    open.stop();
                }
            }
            Effect::DropWork { lock } => {
                let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) else { return };
                open.drop_work();
                let fencing_token = open.leadership().fencing_token();
                self.report(lock, |report| report.dropped_work(fencing_token));
                // An abort takes effect at the work's next turn, for which the loop waits.
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
                // The same elector may have ordered its next candidacy already.
                let next = slot.successor.take().unwrap_or_else(|| Arc::clone(&slot.entry));
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
        // All terms of a session share its window: one renewal extends all, and none is valid without the session (S2).
        let window = Arc::clone(self.window.get_or_insert_with(|| Arc::new(Window::new(&term))));
        let Some(entry) = self.slot(lock).map(|slot| Arc::clone(&slot.entry)) else { return };
        let listener: Arc<dyn TermListener> = Arc::clone(&entry) as _;
        let leadership = Leadership::of_session(term.fencing_token, window, clock, Arc::downgrade(&listener));
        // The status shows the term before the work can ask for it.
        self.report(lock, |report| report.started(&leadership, reason));
        let Some(slot) = self.slot(lock) else { return };
        // Prepared for each term: a term that was missed is followed by another of the same candidacy (rule 12).
        let Some(start) = slot.candidacy.as_ref().map(|candidacy| candidacy.work.prepare()) else { return };
        let open = OpenTerm::start(leadership, start, entry.on_stop.clone(), entry.status.clone());
        // Kept beyond the run, because work may outlive it, and the next candidacy waits for that work (rule 8).
        entry.remember_work(open.work());
        slot.open = Some(open);
    }

    fn extend(&mut self, valid_until: LocalInstant) {
        let settings = &self.shared.settings;
        let sent_at = valid_until - settings.rules.election.renew_deadline;
        let term = Term { fencing_token: 0, sent_at, valid_until };
        self.view.renewed(settings.clock.now());
        // Without a term there is no window, and the first term brings the moments of the machine.
        let Some(window) = &self.window else { return };
        // Work may have seen the window closed since this step began. A term does not revive (rule 4), so the window
        // decides, and the machine takes a further step.
        if !window.extend(&term, &*settings.clock) {
            let now = settings.clock.now();
            self.handle(now, Input::Expired);
        }
    }

    fn tell(&mut self, now: LocalInstant, fact: Fact) {
        match fact {
            Fact::Opened { session } => {
                // A window for each session: terms of the last one may still be held, and theirs must never open again.
                self.window = None;
                self.view.opened(now, &session);
            }
            Fact::Closed { session, reason } => {
                self.close_window();
                log::closed(&session, reason.as_ref());
                // The records that name this session have no effect any more, so nobody has to release them.
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
                log::refused(&slot.entry.name, &refusal);
                let name = place.describe_lock(&slot.entry.name);
                // No request has failed, so the handle of the lock would show no error without this one.
                let error =
                    crate::LockError::new(StoreErrorKind::Unreadable, "cannot lead lock", name, refusal.to_string());
                self.report(lock, |report| report.failed(now, election::Operation::Get, &error));
            }
        }
    }
}
