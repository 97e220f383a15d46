//! The view that a candidate has of the parts of a [`Majority`](crate::Majority), without I/O.
//!
//! The [safety kernel](leaderelection_protocol::quorum) decides what the parts show together, and the requests of a write. What is
//! here is policy, on which no promise about leadership depends: which answers to wait for, and what people have to know.

use std::collections::BTreeSet;

use leaderelection_protocol::quorum::{Quorum, TooFew, Verdict};

use super::parts::{PollAnswers, records, seen};
use crate::lock::action::READ;
use crate::lock::record::{LeaderElectionRecord, LockParts};
use crate::lock::{LockError, VersionedRecord};
use crate::store::StoreErrorKind;

/// The number of undecided polls in a row after which a holder no longer waits for the parts that do not answer.
pub(super) const MAX_UNDECIDED_POLLS: u8 = 16;

/// The state of all parts as a candidate last showed it to its election, and the candidate's own writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The names of the parts.
    pub(super) names: Vec<String>,
    pub(super) quorum: Quorum<LeaderElectionRecord>,
    /// The parts that a candidate leaves to others: those that did not answer the last poll, or have an object although enough are
    /// without one, and would refuse its creation. None before the first poll.
    pub(super) avoided: BTreeSet<usize>,
    /// The number of further polls in a row that need not tell whether the candidate still holds the lock.
    pub(super) patience: u8,
    /// The number of polls in a row that showed two parts renewed by different holders.
    pub(super) doubles: u8,
    pub(super) notice: Option<Notice>,
    /// The parts that did not answer the last poll that waited for them, or any later one.
    pub(super) silent_reads: BTreeSet<usize>,
    /// The parts that did not answer their last writes.
    pub(super) silent_writes: BTreeSet<usize>,
    /// The parts to which a write has left a request in the background.
    pub(super) busy: BTreeSet<usize>,
}

/// The holder of the first part, of another, or of each, who does not hold the other. Both are named if both renew. No decision
/// depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// The holder of the first part.
    pub old: Option<String>,
    /// The holder of another part.
    pub new: Option<String>,
}

impl View {
    /// Creates the view of the candidate `identity` of a lock with these parts, before its first poll. A leader needs
    /// `needed` of them.
    #[must_use]
    pub fn new(identity: impl Into<String>, names: Vec<String>, needed: usize) -> Self {
        let parts = LockParts { needed, of: names.clone(), term: 0 };
        let quorum = Quorum::new(identity.into(), parts, names.len(), needed);
        let [avoided, silent_reads, silent_writes, busy] = <[BTreeSet<usize>; 4]>::default();
        let patience = MAX_UNDECIDED_POLLS;
        Self { names, quorum, avoided, patience, doubles: 0, notice: None, silent_reads, silent_writes, busy }
    }

    /// The name of the whole lock.
    pub(super) fn describe(&self) -> String {
        let parts = self.names.join(" and ");
        if self.needs_all() { parts } else { format!("{} of {parts}", self.quorum.needed()) }
    }

    pub(super) fn needs_all(&self) -> bool {
        self.quorum.needed() == self.names.len()
    }

    /// Begins a poll. Returns the parts to wait for: nobody waits again for a part that has not answered the last poll that
    /// waited for it.
    pub fn begin_poll(&mut self) -> BTreeSet<usize> {
        let all: BTreeSet<usize> = (0..self.names.len()).collect();
        &all - &std::mem::replace(&mut self.silent_reads, all.clone())
    }

    /// Takes the news that a part has answered a read, whether a poll still waits for it or not.
    pub fn has_answered(&mut self, part: usize) {
        self.silent_reads.remove(&part);
    }

    /// Ends a poll that needs none of the parts that it waits for. They are slower than the others, and not silent.
    pub fn end_poll(&mut self, awaited: &BTreeSet<usize>) {
        self.silent_reads.retain(|part| !awaited.contains(part));
    }

    /// Returns `true` if these answers are enough to show a record. Otherwise more answers may change the meaning, if there will be
    /// some.
    #[must_use]
    pub fn is_enough(&self, polled: &PollAnswers, are_more_awaited: bool) -> bool {
        polled.len() >= self.quorum.needed()
            && (!are_more_awaited || self.is_decided(polled) && self.stranger(polled).is_none() && !self.differ(polled))
    }

    /// Another answer may show that the lock is free, or whose it is.
    fn is_decided(&self, polled: &PollAnswers) -> bool {
        match self.quorum.verdict(&seen(polled)).0 {
            Verdict::Blocked | Verdict::HandingOver => false,
            Verdict::Same => self.quorum.is_one_write_or_free(),
            Verdict::Committed | Verdict::Continues | Verdict::Free => true,
        }
    }

    /// Returns `true` if another answer may change the claims that count, because the parts do not claim the same.
    fn differ(&self, polled: &PollAnswers) -> bool {
        let token = |found: &Option<VersionedRecord>| Some(found.as_ref()?.record.leader_transitions);
        let tokens: BTreeSet<Option<u64>> = polled.values().map(token).collect();
        let is_free = records(polled).all(LeaderElectionRecord::is_released);
        let mut all = polled.values().map(|found| {
            let record = &found.as_ref()?.record;
            let claims = (record.completed_jobs(), record.service(), record.preferred_holder.as_deref());
            (claims != Default::default()).then_some(claims)
        });
        let first = all.next();
        polled.len() < self.names.len() && (is_free && tokens.len() > 1 || all.any(|claims| Some(claims) != first))
    }

    /// Returns `true` if a holder cannot tell from these answers that it has lost the lock, because its last write may be in the
    /// parts that have not answered. Its own deadline ends its term in time.
    fn is_in_doubt(&mut self, polled: &PollAnswers) -> bool {
        let holds = !self.needs_all() && self.quorum.is_shown_as_holder();
        let may_hold = holds && polled.len() < self.names.len() && !self.is_decided(polled);
        let is_patient = may_hold && self.patience > 0;
        self.patience = if may_hold { self.patience.saturating_sub(1) } else { MAX_UNDECIDED_POLLS };
        is_patient
    }

    /// Returns what the answers to a poll mean: the record that they show together, and what is new for people to know.
    ///
    /// # Errors
    ///
    /// The lock is that of candidates of other parts, or too few answers tell whether the candidate still holds it.
    pub fn observe(&mut self, polled: &PollAnswers) -> Result<(Option<VersionedRecord>, Option<Notice>), LockError> {
        if let Some(stranger) = self.stranger(polled) {
            return Err(stranger.refusal(self.describe()));
        }
        let shown = if self.is_in_doubt(polled) { Err(TooFew) } else { self.show(polled) };
        shown.map_err(|TooFew| {
            let problem = "too few of its parts answer to tell who holds it";
            LockError::new(StoreErrorKind::Ambiguous, READ, self.describe(), problem)
        })
    }

    /// Returns the record that these answers show together, and what is new for people to know.
    ///
    /// # Errors
    ///
    /// Too few parts have answered.
    pub fn show(&mut self, polled: &PollAnswers) -> Result<(Option<VersionedRecord>, Option<Notice>), TooFew> {
        let news = self.notice_of(polled);
        let (found, age) = self.quorum.look(&seen(polled))?;
        let is_avoided = |part: &usize| polled.get(part).is_none_or(|object| found.is_none() && object.is_some());
        self.avoided = (0..self.names.len()).filter(is_avoided).collect();
        let shown = found
            .map(|found| VersionedRecord::new(LeaderElectionRecord::clone(&found.record), found.version).with_age(age));
        Ok((shown, news))
    }
}
