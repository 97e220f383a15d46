//! Rules S1 and S6: the member's own session.
//!
//! The session's object follows rules 1 to 14, so an [`Election`] renews it. That election has only one candidate and
//! one term: see [`Lease::of_session`](leaderelection_protocol::lease::Lease::of_session).

use std::sync::Arc;

use leaderelection_protocol::policy::back_off::BackOff;
use leaderelection_protocol::policy::released::Released;

use super::effect::{Effect, Fact};
use super::input::SessionEntropy;
use super::local_session::LocalSession;
use super::lock::Phase;
use super::member::{Housekeeping, Member};
use super::peer::{self, Peer, Session};
use super::{LockId, SessionId};
use crate::clock::LocalInstant;
use crate::election::{self, Election, Input, Request, Write};
use crate::lock::record::LeaderElectionRecord;
use crate::store::Version;
use crate::term::{Ending, TermEndReason, WorkEnd};

/// How many of its own earlier sessions a member remembers. Their objects may still look alive.
const REMEMBERED: usize = 8;

impl Member {
    /// Opens a session under a new ID, if no other session has this member's identity.
    pub(super) fn open(&mut self, now: LocalInstant, draw: &mut impl SessionEntropy) {
        if self.own.is_some() || self.stop_asked || !self.may_open(now) {
            return;
        }
        let id = draw.session();
        let mut election = Election::of_session(id.clone(), self.rules.election.clone());
        // The new election does not know of an earlier `Retry-After`.
        let stand_back = self.asked_until.saturating_since(now);
        election.handle(now, Input::Begin { stand_back, ends_with_work: false, job: None }, draw);
        // The count starts anew for each session: readers compare it between two renewals (rule S6).
        self.released = Released::default();
        self.own = Some(LocalSession { id, election, term: None, opened_at: now, ended: None, concluded: false });
        self.step_own(now, Input::Tick, draw);
    }

    /// The last write of the local session that is known to be committed; `None` without a session or such a write.
    #[must_use]
    pub fn own_write(&self) -> Option<(Arc<LeaderElectionRecord>, Version)> {
        self.own.as_ref()?.election.share_observed()
    }

    /// Returns `true` if every session is known, and no other process has one with this identity.
    fn may_open(&self, now: LocalInstant) -> bool {
        let is_in_the_way = |(id, session, peer): (&SessionId, &Session, &Peer)| {
            if session.is_over() || self.past.contains(id) {
                return false;
            }
            match &peer.identity {
                // An expired session of this identity is ended first, unless requests about it keep failing.
                Some(identity) => {
                    let has_expired = peer.ends_at(session).is_some_and(|at| at <= now);
                    *identity == self.identity && !(has_expired && peer.is_given_up(now))
                }
                // A session whose record was not read may have this identity, too. The wait for it only saves requests,
                // so a session that cannot be read does not block forever.
                None => session.expires_at().is_none() && !peer.is_given_up(now),
            }
        };
        self.knows_sessions && !self.peers.iter().any(is_in_the_way)
    }

    /// Passes an input to the local session, and carries out its effects.
    pub(super) fn step_own(&mut self, now: LocalInstant, input: Input, draw: &mut impl SessionEntropy) {
        let Some(own) = &mut self.own else { return };
        own.election.handle(now, input, draw);
        self.follow_own(now, draw);
    }

    /// Carries out what the local session has decided, and reports to it when its work has ended.
    pub(super) fn follow_own(&mut self, now: LocalInstant, draw: &mut impl SessionEntropy) {
        while let Some(own) = &mut self.own {
            if let Some(effect) = own.election.next() {
                self.carry_out(now, effect, draw);
            } else if own.ended.is_some() && !own.concluded && !self.table.works_for(&own.id) {
                // The work of the session is the work of all its locks.
                own.concluded = true;
                own.election.handle(now, Input::WorkEnded(WorkEnd::Complete), draw);
            } else {
                break;
            }
        }
    }

    fn carry_out(&mut self, now: LocalInstant, effect: election::Effect, draw: &mut impl SessionEntropy) {
        let Some(own) = &mut self.own else { return };
        match effect {
            election::Effect::Send(request) => self.send_own(now, request),
            election::Effect::Start { term, .. } => {
                (own.term, own.opened_at) = (Some(term), now);
                let session = own.id.clone();
                self.open_backoff = BackOff::default();
                self.emit(Fact::Opened { session, term });
                self.on_opened(now);
            }
            election::Effect::Extend(term) => {
                own.term = Some(term);
                self.released.renewed();
                self.effects.push_back(Effect::Extend(term));
            }
            election::Effect::Stop { reason, drop_by, .. } => {
                // From now on no write of a lock is sent, and no answer to a take counts (rule S2).
                own.term = None;
                own.ended = Some(reason.clone());
                self.end_terms(&reason, drop_by);
            }
            election::Effect::DropWork => self.drop_all_work(),
            election::Effect::Abandon => self.abandon_all_work(),
            election::Effect::Finished(_) => self.close(now, draw),
            election::Effect::Fact(fact) => self.emit(Fact::Own(fact)),
        }
    }

    fn send_own(&mut self, now: LocalInstant, mut request: Request) {
        let Some((session, opened_at)) = self.own.as_ref().map(|own| (own.id.clone(), own.opened_at)) else { return };
        if let Request::Write(Write { record, .. }) = &mut request {
            let (record, lived) = (Arc::make_mut(record), self.rules.balance.then(|| now.saturating_since(opened_at)));
            peer::add_session_fields(record, self.rules.weight, &mut self.released, lived);
            self.report_progress(now, record);
        }
        self.effects.push_back(Effect::Own { session, request });
    }

    /// Begins to compete for the locks.
    fn on_opened(&mut self, now: LocalInstant) {
        // A listing from before this session may miss later changes. If a page is in flight, another listing follows.
        if !self.lock_listing.in_flight {
            self.lock_listing.end();
        }
        (self.has_listed_members, self.knows_members) = (false, false);
        self.housekeeping.set_earlier(Housekeeping::Sessions, now);
        self.poll_locks_soon(now);
        for index in 0..self.locks.len() {
            self.begin_waits(now, LockId::of(index));
        }
    }

    /// Ends every term, because the session is over.
    fn end_terms(&mut self, reason: &TermEndReason, drop_by: LocalInstant) {
        // From now on, the session's election waits for the work of all locks, and drops late work.
        self.due_locks.clear();
        self.ending_deadlines.clear();
        self.handing_over.clear();
        self.rebalance_scan = None;
        for index in 0..self.locks.len() {
            let mut ending = match std::mem::replace(&mut self.locks[index].phase, Phase::Idle) {
                Phase::Leading { token } => {
                    let (fencing_token, reason) = (token, reason.clone());
                    self.table.end_term(LockId::of(index).0);
                    let ending = Ending::of_session(fencing_token, reason.clone());
                    self.order(LockId::of(index), election::Effect::Stop { fencing_token, reason, drop_by });
                    Box::new(ending)
                }
                // The driver got the order to stop when this term ended, so it must not get a second one.
                Phase::Ending(ending) => ending,
                other => {
                    self.locks[index].phase = other;
                    continue;
                }
            };
            // The caller waits for the session's release, because that frees the lock.
            ending.leave_to_session();
            self.locks[index].phase = Phase::Ending(ending);
        }
    }

    /// Forgets the session, which is over for good, and opens another.
    fn close(&mut self, now: LocalInstant, draw: &mut impl SessionEntropy) {
        let Some(own) = self.own.take() else { return };
        let released = own.election.share_observed().filter(|(record, _)| record.is_released());
        let may_exist = own.election.lease().has_tried_to_create();
        if may_exist {
            // From now on, this is one of the other sessions. Like them, it must be seen to have ended.
            let lease = self.rules.election.lease_duration;
            self.peers.closed(own.election.lease());
            if let Some((_, peer)) = self.peers.get_mut(&own.id) {
                *peer = Peer::new(now, lease);
            }
            if self.past.len() == REMEMBERED {
                self.past.remove(0);
            }
            self.past.push(own.id.clone());
        }
        if own.ended.is_none() {
            // The next ID counts as another attempt to create the session, so the back-off continues (rule 6).
            self.open_after = now + self.open_backoff.next(self.rules.election.retry_period, draw.jitter());
        }
        self.emit(Fact::Closed { session: own.id.clone(), reason: own.ended, released });
        for index in 0..self.locks.len() {
            let (id, lock) = (LockId::of(index), &mut self.locks[index]);
            // A take that is committed later names a session that is over, so others take the lock.
            lock.in_doubt = false;
            // This only updates the index: if the lock names the closed session, it is now held by one of the others.
            self.change_lock(id, |_| ());
            if matches!(self.locks[index].phase, Phase::Ending(_)) {
                self.finish(now, id);
            }
        }
        if may_exist {
            self.plan_peer(now, &own.id);
        }
        if self.stop_asked {
            self.end(now);
        } else {
            self.open_soon(now);
        }
    }

    pub(super) fn open_soon(&mut self, now: LocalInstant) {
        if self.begun && self.own.is_none() && !self.stop_asked {
            self.open_at = Some(now.max(self.open_after));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::effect::Effect;
    use super::super::input::Input;
    use super::super::listing::Page;
    use super::super::rules::SessionConfig;
    use super::*;
    use crate::election::{self, Answer, EntropySource, Jitter, STEPS, WriteMeta};

    struct Ids(u32);

    impl EntropySource for Ids {
        fn jitter(&mut self) -> Jitter {
            Jitter::default()
        }

        fn stamp(&mut self) -> WriteMeta {
            self.0 += 1;
            WriteMeta { write_id: self.0.to_string(), time: chrono::DateTime::UNIX_EPOCH }
        }
    }

    impl SessionEntropy for Ids {
        fn session(&mut self) -> SessionId {
            "s".into()
        }
    }

    #[test]
    fn a_renewal_is_two_steps_of_the_lease() {
        let second = Duration::from_secs(1);
        let rules = election::ElectionConfig::new("a", second * 15, second * 10, second * 2);
        let (mut member, mut ids, mut now) =
            (Member::new(SessionConfig::new(rules)), Ids(0), LocalInstant::from_nanos(1));
        let (mut renewals, mut written) = (0, 0);
        let mut next = Some(Input::Begin);
        while renewals < 3 {
            let (before, is_tick) = (STEPS.get(), next.is_none());
            member.handle(now, next.take().unwrap_or(Input::Tick), &mut ids);
            let steps = STEPS.get() - before;
            let mut sends = false;
            while let Some(effect) = member.next() {
                match effect {
                    Effect::ListSessions { .. } => {
                        next = Some(Input::Sessions(Ok(Page { listed: Vec::new(), next: None })));
                    }
                    Effect::Own { session, request: Request::Read } => {
                        next = Some(Input::Own { session, answer: Answer::Read(Ok(None)) });
                    }
                    Effect::Own { session, request: Request::Write(_) } => {
                        (sends, written) = (true, written + 1);
                        let answer = Answer::Written(Ok(Version::new(written.to_string())));
                        next = Some(Input::Own { session, answer });
                    }
                    Effect::Extend(_) => {
                        assert_eq!(steps, 1, "the answer of a renewal");
                        renewals += 1;
                    }
                    _ => {}
                }
            }
            if sends && is_tick {
                assert_eq!(steps, 1, "a renewal that is due");
            }
            if next.is_none() {
                now = now.max(member.wake_at().expect("a session is renewed"));
            }
        }
        assert!(written > 3);
    }
}
