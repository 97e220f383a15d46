//! Rules S2 and S5: reads single locks, takes them and releases them.

use std::sync::Arc;

use leaderelection_protocol::lease::{NoPermit, ReadError};
use leaderelection_protocol::policy::back_off::BackOff;
use leaderelection_protocol::record::Versioned;
use leaderelection_protocol::session::{LockView, SessionRecord};

use super::LockId;
use super::effect::{Fact, Refusal};
use super::input::SessionEntropy;
use super::lock::{Extras, Phase};
use super::member::Member;
use super::record::{decoration_of_release, decoration_of_take, kept_fields};
use super::takeover_rank::TakeoverRank;
use super::wanting::Want;
use crate::clock::LocalInstant;
use crate::election::{self, Answer, BeginReason, Effect, Failure, Jitter, Purpose, Request, Write};
use crate::lock::VersionedRecord;
use crate::lock::incompatible_record::IncompatibleRecord;
use crate::lock::record::MAX_LEADER_TRANSITIONS;
use crate::store::{StoreErrorKind, Version};
use crate::term::TermEndReason;

impl Member {
    /// Sends the request that a lock needs.
    pub(super) fn send_for(&mut self, now: LocalInstant, id: LockId, draw: &mut impl SessionEntropy) {
        // Requests about locks are sent only while the session is open (rule S2).
        if self.window().is_none_or(|term| now >= term.valid_until) {
            return;
        }
        let mut want = self.want(id);
        if let Some(Want::Take) = want {
            // Members may have come or gone since this was planned.
            let Some(TakeoverRank { rank, at }) = self.lock(id).map(|lock| self.takeover_rank(id, lock)) else {
                return;
            };
            if at > now {
                return self.due_locks.set(id.0, at);
            }
            if let Some(lock) = self.lock_mut(id).filter(|lock| rank > 0 && !lock.has_read) {
                // The members that go first have had their turn, so one of them has probably taken the lock. A read costs less than a
                // write that fails, and also shows the holder.
                (lock.has_read, want) = (true, Some(Want::Read));
            }
        }
        if let (Some(Want::Release), Some(lock)) = (&want, self.lock_mut(id)) {
            // The release names the next leader, and carries the job's mark. Both are added only now, because a read would replace them.
            lock.prepare_release();
            self.mark_job(id);
        }
        if let (Some(Want::Read), Some(lock)) = (&want, self.lock_mut(id)) {
            // Cleared now: if a new reason for a read comes while this one is in flight, another read has to follow.
            lock.must_read = false;
        }
        let Self { own: Some(own), table, peers, locks, rules, .. } = self else { return };
        let (own, lock, rules) = (own.election.lease(), &locks[id.0 as usize], &rules.election);
        let request = match want {
            Some(Want::Read | Want::FindTaker(_)) => table.begin_read(now, id.0).map(|()| Request::Read),
            Some(Want::Take) => table.may_take(now, id.0, own, peers).map(|permit| {
                let stamp = draw.stamp();
                let record = decoration_of_take(lock, rules, permit.token(), stamp.clone());
                Request::Write(Write::of_session(permit.write(|| stamp.write_id, record), Purpose::Acquire))
            }),
            Some(Want::Release) => table.may_release(now, id.0, own).map(|permit| {
                let stamp = draw.stamp();
                let record = decoration_of_release(lock, rules, stamp.clone());
                Request::Write(Write::of_session(permit.write(|| stamp.write_id, record), Purpose::Release))
            }),
            None => return,
        };
        let request = match request {
            Ok(request) => request,
            Err(NoPermit::Before(at)) => return self.due_locks.set(id.0, at),
            // Another event must come first, and will plan the next request.
            Err(_) => return,
        };
        self.plan_taker_poll(now, id);
        self.order(id, Effect::Send(request));
    }

    pub(super) fn on_lock_answer(&mut self, now: LocalInstant, id: LockId, answer: Answer, jitter: Jitter) {
        let (view, session_of_take) = (self.table.view(id.0), self.table.session_of_take(id.0));
        let is_take = session_of_take.is_some();
        // The answer to a take does not count if it comes after the end of the session that the take names (rule S2). A
        // release names no session, so the session in the lock's record is used.
        let session = session_of_take.or(if let LockView::Held(session) = view { Some(session) } else { None });
        let is_of_open_session = self.window().is_some() && session == self.own.as_ref().map(|own| &own.id);
        // A `Retry-After` applies to all later requests, even if nothing waits for this answer any more (rule 6).
        self.apply_retry_after(now, answer.failure());
        match answer {
            _ if !self.table.is_busy(id.0) => return,
            Answer::Read(Ok(found)) => self.observe(now, id, found),
            Answer::Read(Err(failure)) => self.on_read_failure(now, id, failure, jitter),
            Answer::Written(Ok(version)) if is_take && is_of_open_session => self.on_taken(now, id, version),
            // A committed release always frees the lock, because its record names nobody.
            Answer::Written(Ok(version)) if !is_take => self.on_released(now, id, version, is_of_open_session),
            Answer::Written(result) => {
                // This also applies to a committed take whose answer comes after the end of its session.
                let failure = result.err().map_or(StoreErrorKind::Ambiguous, |failure| failure.kind);
                self.table.write_answered(id.0, None);
                let pause = self.back_off(id, failure, jitter);
                if let Some(lock) = self.lock_mut(id) {
                    lock.not_before = lock.not_before.max(now + pause);
                    // After any failure, the outcome is in doubt: even if a proxy rejected the write, or the answer was a conflict, the
                    // store may have committed it (rule 6).
                    lock.in_doubt |= is_take && is_of_open_session;
                    // After a rejection, the write is sent again without a read, unless its session is over or the lock is being released.
                    // The lock is also being released if the candidacy was stopped while its take was in flight.
                    let is_rejected = matches!(failure, StoreErrorKind::Rejected | StoreErrorKind::Fatal);
                    lock.must_read |= !is_rejected || !is_of_open_session || lock.is_being_released();
                }
            }
        }
        self.plan(now, id);
    }

    fn on_read_failure(&mut self, now: LocalInstant, id: LockId, failure: Failure, jitter: Jitter) {
        let pause = self.back_off(id, failure.kind, jitter);
        let is_unreadable = failure.kind == StoreErrorKind::Unreadable;
        // The version of a refused object is unknown only if the object is unreadable.
        let was_unreadable = self.table.view(id.0) == LockView::Refused && self.table.version(id.0).is_none();
        self.hand_in(now, id, Err(if is_unreadable { ReadError::Unreadable } else { ReadError::Failed }));
        if let Some(lock) = self.lock_mut(id) {
            lock.not_before = lock.not_before.max(now + pause);
            (lock.must_read, lock.read_failed) = (true, true);
            lock.is_incompatible &= !is_unreadable;
        }
        if is_unreadable {
            if !was_unreadable {
                self.emit(Fact::Refused { lock: id, refusal: Refusal::Unreadable });
            }
            // No write can name the version of an unreadable object, so the lock can be neither kept nor released.
            self.lose(now, id, TermEndReason::Unreadable);
        }
    }

    /// Handles a read of a lock.
    fn observe(&mut self, now: LocalInstant, id: LockId, found: Option<VersionedRecord>) {
        let is_unknown = self.table.view(id.0) == LockView::Unknown;
        let has_changed = is_unknown || found.as_ref().map(|found| &found.version) != self.table.version(id.0);
        let Some(lock) = self.lock_mut(id) else { return };
        (lock.read_failed, lock.is_exhausted) = (false, false);
        if has_changed {
            // The writes in doubt named another version, so they can no longer be committed.
            (lock.in_doubt, lock.failures) = (false, BackOff::default());
        }
        // The next lines come before the read changes the view: the reason of a term depends on the record before it.
        let key_before = self.request_key(id);
        let was_free = self.table.view(id.0) == LockView::Free;
        // A message or the session's record has reported a release that no read has shown yet. The waits of rule S9 began with the report,
        // so this read does not restart them.
        let is_reported_release = self.last_releaser.contains_key(&id.0) && !was_free;
        let reason = self.begin_reason(id);
        match found {
            None => self.observe_nothing(now, id),
            Some(found) => self.observe_record(now, id, found),
        }
        self.observe_taker(now, id);
        self.forget_last_releaser(id);
        // This comes before `begin_waits`: if the read shows one of our own writes, there is nothing to wait for.
        self.follow_record(now, id, reason);
        self.finish_if_job_is_done(now, id);
        // If a request replaces another one, the wait for the named candidate does not restart. Otherwise endless requests would block all
        // other candidates (rule 14).
        if has_changed && !is_reported_release && (key_before.is_none() || key_before != self.request_key(id)) {
            self.begin_waits(now, id);
        }
    }

    /// Identifies the transfer request for the next term by that term's token, so a request that replaces it has the
    /// same key. `None` if the lock cannot be taken, or no candidate is preferred.
    fn request_key(&self, id: LockId) -> Option<u64> {
        let lock = self.lock(id).filter(|lock| self.acquire_reason(id, lock).is_some())?;
        lock.extras.as_ref()?.preferred.as_ref().map(|_| self.table.next_token(id.0))
    }

    fn observe_nothing(&mut self, now: LocalInstant, id: LockId) {
        self.hand_in(now, id, Ok(None));
        if let Some(lock) = self.lock_mut(id) {
            lock.is_incompatible = false;
        }
        // To notice that the object is gone, the leader may need three requests: the listing in flight, the next one, and a read. Rule
        // S5's wait allows for short ones. If this member's last listing was long (else `listing_took` is zero), each may take as long.
        let further = self.listing_took * 3;
        match (self.table.view(id.0), self.locks.get_mut(id.0 as usize)) {
            (LockView::Absent(free_at), Some(lock)) if free_at > now => {
                lock.not_before = lock.not_before.max(free_at + further);
            }
            _ => {}
        }
        self.announce(id, None);
        self.lose(now, id, TermEndReason::of_loss(None));
    }

    /// Passes the answer to a read to the kernel.
    fn hand_in(&mut self, now: LocalInstant, id: LockId, answer: Result<Option<VersionedRecord>, ReadError>) {
        let shared = |found: VersionedRecord| Versioned { record: Arc::new(found.record), version: found.version };
        self.change_lock(id, |member| {
            let own = member.own.as_ref().map(|own| own.election.lease());
            member.table.read_answered(now, id.0, own, &mut member.peers, answer.map(|found| found.map(shared)));
        });
    }

    fn observe_record(&mut self, now: LocalInstant, id: LockId, found: VersionedRecord) {
        let mut found = found;
        let record = found.record.clone();
        let session = SessionRecord::session(&record);
        let is_own = session.as_ref().is_some_and(|session| self.is_own(session));
        let incompatible = IncompatibleRecord::of(&record, self.rules.election.service.as_deref()).filter(|_| !is_own);
        // If the lock named us and no work ran, we may have sent a release.
        let may_be_released = self.is_ours(id) && self.table.work_of(id.0).is_none();
        // A refused object that can be read is a plain lease, or has an incompatible record.
        let was_plain_lease = self.table.view(id.0) == LockView::Refused && self.table.version(id.0).is_some();
        match session.filter(|_| !is_own) {
            // Sessions of an incompatible configuration do not concern this member.
            Some(_) if incompatible.is_some() => found.record.session = None,
            // A new session counts as alive until a read or a write has shown that it has ended.
            Some(session) => self.discover_session(now, &session, record.session_lease()),
            None => {}
        }
        self.hand_in(now, id, Ok(Some(found)));
        let Some(lock) = self.lock_mut(id) else { return };
        lock.is_exhausted = record.leader_transitions >= MAX_LEADER_TRANSITIONS;
        // A request that names the holder itself is ignored (rule S6). Otherwise, others would wait for that holder after its term.
        let preferred = record.prefers_other_than(&record.holder_identity).map(str::to_owned);
        let extras = Extras { unknown: kept_fields(&record), preferred, failbacks: record.failbacks };
        lock.extras = (extras != Extras::default()).then(|| Box::new(extras));
        // Marks in an incompatible record do not count.
        let job = self.jobs.get_mut(&id.0).filter(|_| incompatible.is_none());
        job.into_iter().for_each(|job| job.done |= record.is_done(&job.id));
        let Some(lock) = self.locks.get_mut(id.0 as usize) else { return };
        let was_incompatible = std::mem::replace(&mut lock.is_incompatible, incompatible.is_some());
        let exhausted = lock.is_exhausted;
        match incompatible {
            // Nothing is announced or lost here: `follow_record` decides to which term this record belongs.
            _ if is_own => return,
            Some(incompatible) => {
                self.announce(id, (!record.is_released()).then(|| record.holder_identity.as_str().into()));
                if !was_incompatible {
                    self.emit(Fact::Refused { lock: id, refusal: Refusal::IncompatibleRecord(incompatible) });
                }
            }
            None => match self.table.view(id.0) {
                LockView::Held(session) => {
                    let is_alive = !self.peers.is_over(session);
                    let leader = is_alive.then(|| self.share_identity(session, &record.holder_identity));
                    self.announce(id, leader);
                }
                LockView::Free => {
                    // The answer to our own release may have been lost. Others have to learn of the release nevertheless.
                    if may_be_released {
                        self.count_release(now, id);
                    }
                    self.announce(id, None);
                }
                _ => {
                    let holder = record.holder_identity.clone();
                    self.announce(id, Some(holder.as_str().into()));
                    // Plain electors do not know sessions, so neither kind overwrites the other's records. A plain leader writes a new
                    // version every few seconds, so this is reported only once.
                    if !was_plain_lease || was_incompatible {
                        self.emit(Fact::Refused { lock: id, refusal: Refusal::PlainLease { holder } });
                    }
                }
            },
        }
        if exhausted {
            self.emit(Fact::Refused { lock: id, refusal: Refusal::TokensExhausted });
        }
        self.lose(now, id, TermEndReason::of_loss(Some(&record)));
    }

    /// Handles the answer that a take is committed. The session that the take names is still open.
    fn on_taken(&mut self, now: LocalInstant, id: LockId, version: Version) {
        let reason = self.begin_reason(id);
        self.change_lock(id, |member| member.table.write_answered(id.0, Some(version)));
        let Some(lock) = self.lock_mut(id) else { return };
        (lock.in_doubt, lock.must_read, lock.failures) = (false, false, BackOff::default());
        if let Some(extras) = &mut lock.extras {
            // The write that took the lock names no preferred candidate (rule 14).
            extras.preferred = None;
        }
        self.forget_last_releaser(id);
        self.follow_record(now, id, reason);
    }

    /// Does what follows from the known record. If the record names the local session and has begun no term, begins
    /// one. Ends a release that is done, and a term that the record contradicts.
    pub(super) fn follow_record(&mut self, now: LocalInstant, id: LockId, reason: BeginReason) {
        let (Some(own), Some(lock)) = (&self.own, self.lock(id)) else { return };
        match &lock.phase {
            Phase::Competing => {
                if let Ok(term) = self.table.start(now, id.0, own.election.lease()) {
                    self.start(now, id, term.token(), reason);
                    self.balance_soon(now, id);
                }
            }
            // A write in flight may still make the lock ours, so wait for its answer first.
            Phase::Ending(ending) if ending.is_releasing() && !self.is_ours(id) && !self.table.is_busy(id.0) => {
                return self.finish(now, id);
            }
            Phase::Leading { .. } if !self.table.leads(id.0) => {
                return self.lose(now, id, TermEndReason::of_loss(None));
            }
            _ => {}
        }
        self.hand_over_if_asked(now, id);
    }

    fn start(&mut self, now: LocalInstant, id: LockId, token: u64, reason: BeginReason) {
        let Some(lock) = self.lock_mut(id) else { return };
        (lock.phase, lock.work_end) = (Phase::Leading { token }, None);
        self.order(id, Effect::Fact(election::Fact::Acquired { fencing_token: token }));
        if let Some(term) = self.leading(now, id) {
            self.order(id, Effect::Start { term, reason });
        }
        self.announce(id, Some(self.identity.clone()));
    }

    fn on_released(&mut self, now: LocalInstant, id: LockId, version: Version, is_of_open_session: bool) {
        // Each session reports its own number of releases (rule S6), so a release that the previous session sent is not added.
        if is_of_open_session {
            self.count_release(now, id);
        }
        self.change_lock(id, |member| member.table.write_answered(id.0, Some(version)));
        self.note_job_done(id);
        self.order(id, Effect::Fact(election::Fact::Released));
        self.announce(id, None);
        self.follow_record(now, id, BeginReason::Released);
        self.begin_waits(now, id);
    }

    /// Counts a lock that the session has released, so that others read it.
    fn count_release(&mut self, now: LocalInstant, id: LockId) {
        let Some(lock) = self.lock(id).map(|lock| lock.hash) else { return };
        self.released.add(lock);
        self.emit(Fact::LockReleased { count: self.released.count, lock });
        self.on_handed_over(now, id);
    }
}
