//! Rules 6 and 10: what an answer of the store means for the next request.

use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::lease::{Kind, ReadError, Shown, Stage};
use leaderelection_protocol::policy::Jitter;
use leaderelection_protocol::record::Versioned;

use super::effect::Fact;
use super::input::{Answer, Failure};
use super::machine::{Election, Found};
use crate::clock::LocalInstant;
use crate::lock::VersionedRecord;
use crate::lock::record::LeaderElectionRecord;
use crate::store::{StoreErrorKind, Version};
use crate::term::TermEndReason;

impl Election {
    pub(super) fn on_answer(&mut self, now: LocalInstant, answer: Answer, jitter: Jitter) {
        // A `Retry-After` counts even if the term has just ended and nothing waits for this answer any more.
        if let Some(failure) = answer.failure() {
            self.pacing.apply_retry_after(&self.rules.pace(), now, failure.retry_after);
        } else {
            self.pacing.answered();
        }
        // If a request is in flight that is no write, it is a read.
        match (answer, self.lease.writes()) {
            (Answer::Read(Ok(found)), None) if self.lease.is_busy() => self.on_read(now, found, jitter),
            (Answer::Read(Err(failure)), None) if self.lease.is_busy() => self.on_read_failure(now, failure, jitter),
            (Answer::Written(answer), Some(Kind::Request)) => self.on_transfer_request_answer(now, answer, jitter),
            (Answer::Written(Ok(version)), Some(_)) => self.on_committed(now, version),
            (Answer::Written(Err(failure)), Some(_)) => self.on_write_failure(now, failure, jitter),
            _ => {}
        }
    }

    fn on_read(&mut self, now: LocalInstant, found: Option<VersionedRecord>, jitter: Jitter) {
        self.must_read = false;
        let age = self.rules.minimum_age(found.as_ref().and_then(|found| found.age));
        let found = found.map(|found| Versioned { record: Arc::new(found.record), version: found.version });
        let record = found.as_ref().map(|found| Arc::clone(&found.record));
        let (competes, has_tried) = (self.competes(), self.lease.unanswered().next().is_some());
        // This precedes `read_answered`, in which the lease forgets the previous read, which `free_at` and
        // `schedule_and_compare` use.
        let blocked_until = self.free_at().unwrap_or_default();
        // Only a candidate polls, and only a candidate gets a peer's messages.
        let is_same_term = competes && self.schedule_and_compare(now, found.as_ref(), jitter);
        let shown = self.lease.read_answered(now, Ok(found), age);
        self.resolve_doubts();
        match shown {
            // One of our writes is committed that had no positive answer.
            Shown::OwnWrite => {
                // The window of this write may be about to close, so the renewal must not wait.
                self.pacing.write_at_once(now);
                self.pacing.made_progress();
            }
            // The version is unchanged, so no unanswered write is committed yet.
            Shown::OwnRecord => self.pacing.write_again(&self.rules.pace(), now, jitter),
            // The first read, or others have changed the object. Not after an unanswered write of ours: the change may
            // be this very write, if too few parts of the lock have it (M7).
            Shown::Absent | Shown::Vanished | Shown::Named | Shown::Written if competes && !has_tried => {
                self.pacing.made_progress();
            }
            _ => {}
        }
        // This comes before `observe`: the end of a term is reported before the next leader.
        self.follow_lease(now, || TermEndReason::of_loss(record.as_deref()));
        self.observe(now, shown, blocked_until, jitter);
        if competes && shown != Shown::OwnWrite {
            if !is_same_term {
                // The messages are about another term.
                self.peer_feed = None;
            }
            self.note_read_for_failback(now);
        }
        self.leave_if_lost(now);
    }

    /// Schedules the candidate's next read, and compares this one with the peer's messages. Returns `true` if this read shows the same term
    /// as the read before.
    fn schedule_and_compare(&mut self, now: LocalInstant, found: Option<&Found>, jitter: Jitter) -> bool {
        self.pacing.polled(&self.rules.pace(), now, self.shows_renewal(found), jitter);
        self.compare_with_messages(now, found, jitter)
    }

    fn on_read_failure(&mut self, now: LocalInstant, failure: Failure, jitter: Jitter) {
        let is_unreadable = failure.kind == StoreErrorKind::Unreadable;
        let error = if is_unreadable { ReadError::Unreadable } else { ReadError::Failed };
        let competes = self.competes();
        self.lease.read_answered(now, Err(error), Duration::ZERO);
        self.resolve_doubts();
        if competes {
            self.defer_failback(now);
            // Unreadable content must never be overwritten, so nothing is written before a successful read.
            self.must_read |= is_unreadable;
        }
        match failure.kind {
            StoreErrorKind::Fatal | StoreErrorKind::Unreadable if competes => {
                self.pacing.poll_failed_for_good(&self.rules.pace(), now, jitter);
            }
            _ if competes && !self.must_read => self.pacing.poll_failed(&self.rules.pace(), now, jitter),
            _ => self.pacing.failed(&self.rules.pace(), now, jitter),
        }
        self.follow_lease(now, || TermEndReason::Unreadable);
        if is_unreadable {
            self.leave_if_lost(now);
        }
    }

    /// Handles the commit of the write in flight. None of this candidate's earlier writes can be committed any more.
    fn on_committed(&mut self, now: LocalInstant, version: Version) {
        self.lease.write_answered(now, Some(version));
        self.resolve_doubts();
        self.pacing.made_progress();
        self.follow_lease(now, || TermEndReason::RenewDeadline);
    }

    fn on_write_failure(&mut self, now: LocalInstant, failure: Failure, jitter: Jitter) {
        // The lease remembers even a rejected write, because a proxy may have lied.
        self.lease.write_answered(now, None);
        // The lease has just added this write.
        let write_id = self.lease.unanswered().last().and_then(|record| record.write_id.clone());
        if failure.kind == StoreErrorKind::Ambiguous {
            self.emit(Fact::Doubted);
            self.doubts.extend(write_id);
        }
        // A write that is unanswered for a whole lease: only a read can show whether to forget it.
        self.must_read |= self.lease.has_old_write(now);
        match failure.kind {
            StoreErrorKind::Conflict | StoreErrorKind::Ambiguous | StoreErrorKind::Unreadable => {
                self.must_read = true;
                self.pacing.in_doubt(&self.rules.pace(), now, jitter);
            }
            StoreErrorKind::Fatal if self.lease.stage() == Stage::Candidate => {
                self.pacing.write_failed_for_good(&self.rules.pace(), now, jitter);
            }
            StoreErrorKind::Rejected | StoreErrorKind::Fatal => self.pacing.failed(&self.rules.pace(), now, jitter),
        }
    }

    /// Reports the writes in doubt whose outcome is now known, or no longer matters.
    fn resolve_doubts(&mut self) {
        for write_id in std::mem::take(&mut self.doubts) {
            let is_this_write = |record: &LeaderElectionRecord| record.write_id.as_ref() == Some(&write_id);
            if self.lease.unanswered().any(is_this_write) {
                self.doubts.push(write_id);
            } else {
                let committed = self.found().is_some_and(|found| is_this_write(&found.record));
                self.emit(Fact::Resolved { committed });
            }
        }
    }
}
