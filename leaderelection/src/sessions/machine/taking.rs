//! Rules S2 and S5: the reads of single locks, and the writes that take and release them.

use std::time::Duration;

use super::effect::{Fact, Refusal};
use super::flight::{Flight, Kind};
use super::input::DrawSession;
use super::lock::{Extras, Lock, Phase, Seen};
use super::member::Member;
use super::record::{release, take, told_lease};
use super::rules::Rules;
use super::turn::Turn;
use super::{LockId, SessionId};
use crate::clock::LocalInstant;
use crate::election::{self, Answer, BackOff, BeginReason, Effect, Failure, Jitter, Request, Term};
use crate::lock::VersionedRecord;
use crate::lock::stranger::Stranger;
use crate::store::{StoreErrorKind, Version};
use crate::term::EndReason;

/// The next request that a lock needs.
enum Want {
    Look,
    /// A look for the member that takes what was handed over, at this moment.
    LookForTaker(LocalInstant),
    Take(BeginReason),
    Release,
}

impl Member {
    /// The reason for which a lock can be taken; `None` if it cannot (rules S4 and S5).
    pub(super) fn opening(&self, lock: &Lock) -> Option<BeginReason> {
        match &lock.seen {
            Seen::Absent => Some(BeginReason::Created),
            Seen::Free { .. } => {
                let preferred = lock.extras.as_ref().and_then(|extras| extras.preferred.as_deref());
                let is_for_us = preferred == Some(&*self.identity);
                Some(if is_for_us { BeginReason::Transferred } else { BeginReason::Released })
            }
            Seen::Held { session, .. } => {
                // Rule S4: that the lease of its session has passed is not enough, because a renewal may be on its way.
                // Only the write that ends the session makes that renewal fail.
                let (_, peer) = self.peers.get(session).filter(|(session, _)| session.is_over())?;
                let of = peer.identity.as_deref().unwrap_or(session).to_owned();
                Some(BeginReason::Expired { of })
            }
            // Never taken: of an unknown object no version is known, an own record is settled or released, and a
            // refused one is no record of a session.
            Seen::Unknown | Seen::Ours { .. } | Seen::Refused { .. } => None,
        }
    }

    fn want(&self, id: LockId) -> Option<Want> {
        let lock = self.lock(id)?;
        let is_ours = matches!(lock.seen, Seen::Ours { .. });
        // Without a candidacy, a read is worth its price only if the record may name this session, and so bar others.
        let competes = match &lock.phase {
            Phase::Idle => false,
            Phase::Ending(ending) => !ending.is_of_session(),
            Phase::Competing | Phase::Leading { .. } => true,
        };
        let matters = competes || lock.in_doubt || is_ours;
        if lock.must_read && matters {
            return Some(Want::Look);
        }
        if let Some(at) = self.taker_is_due(id) {
            return Some(Want::LookForTaker(at));
        }
        match &lock.phase {
            Phase::Ending(ending) if is_ours && ending.is_release() => Some(Want::Release),
            // No term leads by this record: it is what is left of one, or a write that landed late.
            Phase::Idle | Phase::Competing if is_ours && !lock.works => Some(Want::Release),
            // Rule 8: while work of an earlier term that was given up runs, no other term begins.
            Phase::Competing if !lock.works && !lock.is_exhausted && !self.stop_asked => {
                self.opening(lock).map(Want::Take)
            }
            _ => None,
        }
    }

    /// Sets the time of the next request about a lock.
    pub(super) fn plan(&mut self, now: LocalInstant, id: LockId) {
        let Some(lock) = self.lock(id) else { return };
        // Two requests about one lock could be answered in either order, and the older answer would be taken for news.
        let may_send = self.window().is_some() && !self.flights.contains_key(&id.0);
        let Some(want) = self.want(id).filter(|_| may_send) else { return self.due_locks.cancel(&id.0) };
        let at = match want {
            Want::LookForTaker(at) => at,
            Want::Take(_) => self.turn(id, lock).at,
            // The waits are for writes. A read that kept them would find the opening too late.
            Want::Look if !lock.read_failed => self.look_at(now, id, lock),
            Want::Look | Want::Release => lock.not_before,
        };
        // A lock without a leader waits for its requests. After a session has ended, reads of thousands of others wait, too.
        let waits_for_it = !matches!(want, Want::Look) || self.given_up.contains_key(&id.0);
        if at > now {
            self.due_locks.set(id.0, at);
        } else if waits_for_it {
            self.due_locks.set(id.0, LocalInstant::default());
        } else {
            // A read that is wanted once more keeps its place. Otherwise the last of thousands would never have its turn.
            self.due_locks.hurry(id.0, now);
        }
    }

    /// Sends the request that a lock needs.
    pub(super) fn send_for(&mut self, now: LocalInstant, id: LockId, draw: &mut impl DrawSession) {
        // A lock's write names a session that is open (rule S2).
        if self.window().is_none_or(|term| now >= term.valid_until) {
            return;
        }
        let mut want = self.want(id);
        if let Some(Want::Take(_)) = want {
            // Members may have come or gone since this was planned.
            let Some(Turn { rank, at }) = self.lock(id).map(|lock| self.turn(id, lock)) else { return };
            if at > now {
                return self.due_locks.set(id.0, at);
            }
            if let Some(lock) = self.lock_mut(id).filter(|lock| rank > 0 && !lock.has_looked) {
                // A read costs less than a write that is refused, and shows the holder as well.
                (lock.has_looked, want) = (true, Some(Want::Look));
            }
        }
        if let (Some(Want::Release), Some(lock)) = (&want, self.lock_mut(id)) {
            // From here on the record is the rest of an ended term, even if a read shows it once more.
            lock.prepare_release();
        }
        if let (Some(Want::Look), Some(lock)) = (&want, self.lock_mut(id)) {
            // A reason for a read that comes while this one is on its way is a reason for another.
            lock.must_read = false;
        }
        let (Some(own), Some(lock)) = (&self.own, self.lock(id)) else { return };
        let (kind, request) = match want {
            None => return,
            Some(Want::Look | Want::LookForTaker(_)) => (Kind::Look, Request::Look),
            Some(Want::Take(reason)) => {
                let write = take(lock, &self.rules.election, &own.id, draw.stamp());
                (Kind::Take { token: lock.next_token, reason }, Request::Write(write))
            }
            Some(Want::Release) => match release(lock, &self.rules.election, draw.stamp()) {
                Some(write) => (Kind::Release, Request::Write(write)),
                None => return,
            },
        };
        // The answer may come when another session is open, for which the write proves nothing.
        self.flights.insert(id.0, Flight { session: own.id.clone(), kind });
        self.looks_for_taker(now, id);
        self.order(id, Effect::Send(request));
    }

    pub(super) fn on_lock_answer(&mut self, now: LocalInstant, id: LockId, answer: Answer, jitter: Jitter) {
        let Some(Flight { session, kind }) = self.flights.remove(&id.0) else { return };
        // The store's wish counts for every later request, also if nothing waits for this answer any more (rule 6).
        self.obey(now, answer.failure());
        // An answer that comes after the end of the session that the write names is not believed (rule S2).
        let counts = self.is_ours(&session);
        match (kind, answer) {
            (Kind::Look, Answer::Read(Ok(found))) => self.learn(now, id, found),
            (Kind::Look, Answer::Read(Err(failure))) => self.on_read_failure(now, id, failure, jitter),
            (Kind::Take { token, reason }, Answer::Written(Ok(version))) if counts => {
                self.landed(now, id, version, token, reason);
            }
            // A release that landed frees the lock at any time, because its record names nobody.
            (Kind::Release, Answer::Written(Ok(version))) => self.on_released(now, id, version, counts),
            (kind, Answer::Written(result)) => {
                // Here is also a write that landed and was answered after its session: its record names a session that
                // is over.
                let takes = matches!(kind, Kind::Take { .. });
                let failure = result.err().map_or(StoreErrorKind::Ambiguous, |failure| failure.kind);
                let pause = self.back_off(id, failure, jitter);
                if let Some(lock) = self.lock_mut(id) {
                    lock.not_before = lock.not_before.max(now + pause);
                    // Any failure leaves a doubt: what a proxy refuses, or a conflict answers, may have been applied
                    // (rule 6).
                    lock.in_doubt |= takes && counts;
                    // A refused write is tried again without a read. But a candidacy that was stopped while its write
                    // was on the way ends only when a read shows the lock.
                    let is_refused = matches!(failure, StoreErrorKind::Rejected | StoreErrorKind::Fatal);
                    lock.must_read |= !is_refused || !counts || lock.is_release();
                }
            }
            _ => {}
        }
        self.plan(now, id);
    }

    fn on_read_failure(&mut self, now: LocalInstant, id: LockId, failure: Failure, jitter: Jitter) {
        let pause = self.back_off(id, failure.kind, jitter);
        if let Some(lock) = self.lock_mut(id) {
            lock.not_before = lock.not_before.max(now + pause);
            (lock.must_read, lock.read_failed) = (true, true);
        }
        if failure.kind == StoreErrorKind::Unreadable {
            self.refuse(id, None, Refusal::Unreadable);
            // No write can name the version of this object, so the lock can be neither kept nor released.
            self.lose(now, id, EndReason::Unreadable);
        }
    }

    /// Takes a read of a lock.
    fn learn(&mut self, now: LocalInstant, id: LockId, found: Option<VersionedRecord>) {
        let Some(lock) = self.lock_mut(id) else { return };
        (lock.read_failed, lock.is_exhausted) = (false, false);
        let has_changed =
            found.as_ref().map(|found| &found.version) != lock.version() || matches!(lock.seen, Seen::Unknown);
        if has_changed {
            // The writes in doubt named another version, so none of them can land any more.
            (lock.in_doubt, lock.failures) = (false, BackOff::default());
        }
        // Both are asked before the read changes the view: the reason of a term is the record that its write replaced.
        let asked_before = self.asked_for(id);
        // The waits of rule S9 began with the word, and begin again only if something else frees the lock.
        let was_free = self.lock(id).is_some_and(|lock| matches!(lock.seen, Seen::Free { .. }));
        let is_told = self.given_up.contains_key(&id.0) && !was_free;
        let reason = self.lock(id).and_then(|lock| self.opening(lock)).unwrap_or(BeginReason::Released);
        match found {
            None => self.saw_nothing(now, id),
            Some(found) => self.saw_record(now, id, found),
        }
        self.saw_taker(now, id);
        self.forget_giver(id);
        // Before the ranks: the read may show an own write, and then there is nothing to wait for.
        self.settle(now, id, reason);
        // A request that replaces another one begins no second courtesy, because requests without end would then bar every
        // candidate (rule 14).
        if has_changed && !is_told && (asked_before.is_none() || asked_before != self.asked_for(id)) {
            self.freed(now, id);
        }
    }

    /// The token of the next term, if the lock can be taken and a candidate was named for that term.
    fn asked_for(&self, id: LockId) -> Option<u64> {
        let lock = self.lock(id).filter(|lock| self.opening(lock).is_some())?;
        lock.extras.as_ref()?.preferred.as_ref().map(|_| lock.next_token)
    }

    fn saw_nothing(&mut self, now: LocalInstant, id: LockId) {
        let wait = self.lock(id).and_then(|lock| self.until_its_leader_has_looked(lock));
        if let (Some(wait), Some(lock)) = (wait, self.lock_mut(id)) {
            lock.not_before = lock.not_before.max(now + wait);
        }
        self.set_seen(id, Seen::Absent);
        self.announce(id, None);
        self.lose(now, id, EndReason::of_loss(None));
    }

    /// The time within which the leader of a lock whose object vanished must have noticed that; `None` if there was none
    /// (rule S5).
    fn until_its_leader_has_looked(&self, lock: &Lock) -> Option<Duration> {
        let Rules { election, look_around, .. } = &*self.rules;
        let leader = match &lock.seen {
            Seen::Held { session, .. } => self.peers.get(session).filter(|(leader, _)| !leader.is_over()),
            // Somebody may have taken the lock since it was read.
            Seen::Free { .. } => None,
            // Or before the record was spoilt.
            Seen::Refused { .. } => None,
            Seen::Unknown | Seen::Absent | Seen::Ours { .. } => return None,
        };
        let lease = leader.map_or_else(|| self.peers.longest_lease(), |(leader, _)| leader.lease_duration());
        // By the bound on clocks, no clock is slower than this one by more than this ratio.
        let slowest = election.lease_duration.div_duration_f64(election.renew_deadline);
        // The leader looks by its own clock. A listing that was on its way, the next one, and a read take less than half of
        // the leader's deadline each, or as long as this member's last listing of many pages.
        Some(look_around.mul_f64(slowest) + lease * 2 + self.listing_took * 3)
    }

    fn saw_record(&mut self, now: LocalInstant, id: LockId, found: VersionedRecord) {
        let VersionedRecord { record, version, .. } = found;
        let Some(lock) = self.lock_mut(id) else { return };
        lock.saw_token(record.leader_transitions);
        // No renewal drops the name of the leader itself, which would bar the others after its term.
        let preferred = record.prefers_other_than(&record.holder_identity).map(str::to_owned);
        let mut unknown = record.unknown.clone();
        let lease = told_lease(&mut unknown);
        let extras = Extras { unknown, preferred, take_backs: record.take_backs };
        lock.extras = (extras != Extras::default()).then(|| Box::new(extras));
        let exhausted = lock.is_exhausted;
        let is_left = matches!(lock.seen, Seen::Ours { .. }) && !lock.works;
        let stranger = Stranger::of(&record, self.rules.election.purpose.as_deref());
        match (&record.session, stranger) {
            (Some(session), _) if self.is_ours(session) => {
                // Nothing is announced or lost here: `settle` decides by the token which term this record is of.
                self.set_seen(id, Seen::Ours { version, token: record.leader_transitions });
                return;
            }
            (_, Some(stranger)) => {
                self.announce(id, (!record.is_released()).then(|| record.holder_identity.as_str().into()));
                self.refuse(id, Some(version), Refusal::Stranger(stranger));
            }
            (Some(session), None) => {
                let session = SessionId::from(session.as_str());
                // A session that this member did not know counts as alive until a read or a write has shown its end.
                self.hear_of(now, &session, lease);
                let is_alive = !self.peers.is_over(&session);
                let leader = is_alive.then(|| self.share_identity(&session, &record.holder_identity));
                self.set_seen(id, Seen::Held { version, session });
                self.announce(id, leader);
            }
            (None, None) if record.is_released() => {
                // The answer to the own release may be lost. Others hear of the release all the same.
                if is_left {
                    self.let_go(now, id);
                }
                self.set_seen(id, Seen::Free { version });
                self.announce(id, None);
            }
            (None, None) => {
                let holder = record.holder_identity.clone();
                self.announce(id, Some(holder.as_str().into()));
                // An elector with a lease of its own knows no sessions, so each kind leaves the other's records alone.
                self.refuse(id, Some(version), Refusal::PlainLease { holder });
            }
        }
        if exhausted {
            self.tell(Fact::Refused { lock: id, refusal: Refusal::TokensExhausted });
        }
        self.lose(now, id, EndReason::of_loss(Some(&record)));
    }

    fn refuse(&mut self, id: LockId, version: Option<Version>, refusal: Refusal) {
        // The holder of a lease writes a new version every few seconds.
        let is_known = self.lock(id).is_some_and(
            |lock| matches!(&lock.seen, Seen::Refused { version: before } if before.is_some() == version.is_some()),
        );
        self.set_seen(id, Seen::Refused { version });
        if !is_known {
            self.tell(Fact::Refused { lock: id, refusal });
        }
    }

    /// Takes a write of this session that is known to have landed while the session was valid.
    fn landed(&mut self, now: LocalInstant, id: LockId, version: Version, token: u64, reason: BeginReason) {
        let Some(lock) = self.lock_mut(id) else { return };
        (lock.in_doubt, lock.must_read, lock.failures) = (false, false, BackOff::default());
        lock.saw_token(token);
        if let Some(extras) = &mut lock.extras {
            // The write that won carried no name: the next term drops it (rule 14).
            extras.preferred = None;
        }
        self.set_seen(id, Seen::Ours { version, token });
        self.forget_giver(id);
        self.settle(now, id, reason);
    }

    /// Begins a term if the record names the own session by a write that no term has had yet.
    pub(super) fn settle(&mut self, now: LocalInstant, id: LockId, reason: BeginReason) {
        let (Some(window), Some(lock)) = (self.window(), self.lock(id)) else { return };
        let ours = match &lock.seen {
            Seen::Ours { token, .. } => Some(*token),
            _ => None,
        };
        match (&lock.phase, ours) {
            (Phase::Competing, Some(token)) if token >= lock.first_new_token && !lock.works => {
                self.start(id, token, window, reason);
                self.balance_soon(now, id);
            }
            // A write on its way may still make the lock ours, so nothing is over before its answer.
            (Phase::Ending(ending), None) if ending.is_release() && !self.flights.contains_key(&id.0) => {
                return self.finish(now, id);
            }
            _ => {}
        }
        self.hand_over_if_asked(now, id);
    }

    fn start(&mut self, id: LockId, token: u64, window: Term, reason: BeginReason) {
        let Some(lock) = self.lock_mut(id) else { return };
        lock.phase = Phase::Leading { token };
        // A read that shows this record after the end of the term begins no second one (rule S2).
        lock.first_new_token = token + 1;
        (lock.works, lock.work_end) = (true, None);
        // Counted before the driver starts the work, so that no step in between releases the session beside it.
        self.at_work += 1;
        self.order(id, Effect::Fact(election::Fact::Acquired { fencing_token: token }));
        let term = Term { fencing_token: token, ..window };
        self.order(id, Effect::Start { term, reason });
        self.announce(id, Some(self.identity.clone()));
    }

    fn on_released(&mut self, now: LocalInstant, id: LockId, version: Version, counts: bool) {
        // The number is the session's: a release that the session before has sent says nothing about this one.
        if counts {
            self.let_go(now, id);
        }
        self.set_seen(id, Seen::Free { version });
        self.order(id, Effect::Fact(election::Fact::Released));
        self.announce(id, None);
        self.settle(now, id, BeginReason::Released);
        self.freed(now, id);
    }

    /// Counts a lock that the session has released, so that others read it.
    fn let_go(&mut self, now: LocalInstant, id: LockId) {
        let Some(lock) = self.lock(id).map(|lock| lock.hash) else { return };
        self.released.add(lock);
        self.tell(Fact::LetGo { count: self.released.count, lock });
        self.on_handed_over(now, id);
    }
}
