//! What a candidate knows of the parts of a [`Majority`](crate::Majority), without I/O.
//!
//! The [safety kernel](leaderelection_protocol::quorum) decides what the parts show together, and which requests a write needs. This
//! module is policy, on which no promise about leadership depends: it decides which answers to wait for, and what to report to people.

use std::collections::BTreeSet;

use leaderelection_protocol::quorum::{Quorum, TooFew, Verdict};

use super::parts::{PollAnswers, observed, records};
use crate::lock::action::READ;
use crate::lock::record::{LeaderElectionRecord, LockParts};
use crate::lock::{LockError, VersionedRecord};
use crate::store::StoreErrorKind;

/// After this many undecided polls in a row, a holder no longer waits for silent parts.
pub(super) const MAX_UNDECIDED_POLLS: u8 = 16;

/// The state of all parts, as last shown to the candidate's election, and the candidate's own writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The names of the parts.
    pub(super) names: Vec<String>,
    pub(super) quorum: Quorum<LeaderElectionRecord>,
    /// The parts that a takeover skips: those that did not answer the last poll, and if it showed no record, those with
    /// an object. Empty before the first poll.
    pub(super) avoided: BTreeSet<usize>,
    /// How many more polls in a row may leave undecided whether the candidate still holds the lock.
    pub(super) patience: u8,
    /// How many polls in a row showed two parts renewed by different holders.
    pub(super) two_leader_polls: u8,
    pub(super) notice: Option<Notice>,
    /// The parts that did not answer the last poll that waited for them, nor any read since.
    pub(super) silent_reads: BTreeSet<usize>,
    /// The parts that did not answer their last writes.
    pub(super) silent_writes: BTreeSet<usize>,
    /// The parts with a request in the background, which a write has left there.
    pub(super) busy: BTreeSet<usize>,
}

/// What to report to people: a holder of the old lock (the first part) or of the new one (another part) that does not hold both. If two
/// such holders keep renewing, both are named. No decision depends on this.
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
        Self { names, quorum, avoided, patience, two_leader_polls: 0, notice: None, silent_reads, silent_writes, busy }
    }

    /// The name of the whole lock.
    pub(super) fn describe(&self) -> String {
        let parts = self.names.join(" and ");
        if self.needs_all() { parts } else { format!("{} of {parts}", self.quorum.needed()) }
    }

    pub(super) fn needs_all(&self) -> bool {
        self.quorum.needed() == self.names.len()
    }

    /// Begins a poll. Returns the parts to wait for: all except the silent ones.
    pub fn begin_poll(&mut self) -> BTreeSet<usize> {
        let all: BTreeSet<usize> = (0..self.names.len()).collect();
        &all - &std::mem::replace(&mut self.silent_reads, all.clone())
    }

    /// Notes that a part has answered a read, whether or not a poll still waits for it.
    pub fn has_answered(&mut self, part: usize) {
        self.silent_reads.remove(&part);
    }

    /// Ends a poll that no longer needs the answers of the parts in `awaited`. These are slower than the others, but not silent.
    pub fn end_poll(&mut self, awaited: &BTreeSet<usize>) {
        self.silent_reads.retain(|part| !awaited.contains(part));
    }

    /// Returns `true` if the poll can end. Otherwise, further answers are needed, or could change what the poll shows.
    #[must_use]
    pub fn is_enough(&self, polled: &PollAnswers, are_more_awaited: bool) -> bool {
        polled.len() >= self.quorum.needed()
            && (!are_more_awaited
                || self.is_decided(polled) && self.incompatible_record(polled).is_none() && !self.differ(polled))
    }

    /// Returns `false` if another answer may show that the lock is free, or who holds it.
    fn is_decided(&self, polled: &PollAnswers) -> bool {
        match self.quorum.verdict(&observed(polled)).0 {
            Verdict::Blocked | Verdict::HandingOver => false,
            Verdict::Same => self.quorum.is_one_write_or_free(),
            Verdict::Committed | Verdict::Continues | Verdict::Free => true,
        }
    }

    /// Returns `true` if another answer may change which token or which claims count. This is so if all parts are free
    /// but have different tokens, or if their claims differ.
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

    /// Returns `true` if a holder cannot tell whether it has lost the lock, because its last write may be in the parts that have not
    /// answered. Returns `false` after too many such polls in a row. The term still ends at the renew deadline.
    fn is_in_doubt(&mut self, polled: &PollAnswers) -> bool {
        let holds = !self.needs_all() && self.quorum.is_shown_as_holder();
        let may_hold = holds && polled.len() < self.names.len() && !self.is_decided(polled);
        let is_patient = may_hold && self.patience > 0;
        self.patience = if may_hold { self.patience.saturating_sub(1) } else { MAX_UNDECIDED_POLLS };
        is_patient
    }

    /// Returns the record that the answers to a poll show together, and a notice for people if there is a new one.
    ///
    /// # Errors
    ///
    /// The lock belongs to candidates with other parts, or there are too few answers to decide whether the candidate still holds it.
    pub fn observe(&mut self, polled: &PollAnswers) -> Result<(Option<VersionedRecord>, Option<Notice>), LockError> {
        if let Some(incompatible) = self.incompatible_record(polled) {
            return Err(incompatible.refusal(self.describe()));
        }
        let shown = if self.is_in_doubt(polled) { Err(TooFew) } else { self.show(polled) };
        shown.map_err(|TooFew| {
            let problem = "too few of its parts answer to tell who holds it";
            LockError::new(StoreErrorKind::Ambiguous, READ, self.describe(), problem)
        })
    }

    /// Returns the record that these answers show together, and a notice for people if there is a new one.
    ///
    /// # Errors
    ///
    /// Too few parts have answered.
    pub fn show(&mut self, polled: &PollAnswers) -> Result<(Option<VersionedRecord>, Option<Notice>), TooFew> {
        let notice = self.notice_of(polled);
        let (found, age) = self.quorum.polled(&observed(polled))?;
        let is_avoided = |part: &usize| polled.get(part).is_none_or(|object| found.is_none() && object.is_some());
        self.avoided = (0..self.names.len()).filter(is_avoided).collect();
        let shown = found
            .map(|found| VersionedRecord::new(LeaderElectionRecord::clone(&found.record), found.version).with_age(age));
        Ok((shown, notice))
    }
}
