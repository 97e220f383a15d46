//! The decisions of a [`Majority`](crate::Majority), without I/O: the record that the parts show together, and the
//! requests of a write.
//!
//! The numbers in comments are those of the rules in [the protocol](crate::protocol).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use leaderelection_protocol::record::is_same_write;

use super::parts::{Looks, Parts, Place, found, is_one_write};
use crate::lock::action::READ;
use crate::lock::record::{LeaderElectionRecord, RELEASED_LEASE};
use crate::lock::{LockError, VersionedRecord};
use crate::store::{StoreErrorKind, Version};

/// The number of undecided looks in a row after which a holder no longer waits for the parts that do not answer.
const UNDECIDED_LOOKS: u8 = 16;

/// The state of all parts as a candidate last showed it to its election, and the candidate's own writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    /// The identity of the candidate.
    pub(super) identity: String,
    /// The names of the parts.
    pub(super) names: Vec<String>,
    /// The number of parts that a leader needs.
    pub(super) quorum: usize,
    pub(super) shown: Option<Shown>,
    /// The parts that answered the last look; all before the first.
    pub(super) looked: BTreeSet<usize>,
    /// The own writes that may be in a part, or may land yet, oldest first.
    pub(super) own: VecDeque<Own>,
    /// The number of looks in a row that did not tell whether the candidate still holds the lock.
    undecided: u8,
    /// The number of looks in a row that showed two parts renewed by different holders.
    pub(super) doubles: u8,
    pub(super) notice: Option<Notice>,
    /// The parts that did not answer the last look that waited for them, or any later one.
    pub(super) silent_reads: BTreeSet<usize>,
    /// The parts that did not answer their last writes.
    pub(super) silent_writes: BTreeSet<usize>,
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

/// The record that was shown last, with its version, and what is known of the parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shown {
    pub(super) record: LeaderElectionRecord,
    pub(super) version: Version,
    pub(super) parts: Parts,
    /// `true` if all parts that count show the record, so that its holder knows a request in any of them for its own record.
    pub(super) is_one_write: bool,
}

/// An own write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Own {
    pub(super) record: Arc<LeaderElectionRecord>,
    /// `true` while the election waits for the outcome of the write. A version that the election did not know makes it
    /// forget its writes.
    pub(super) is_awaited: bool,
}

/// The meaning of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing has changed.
    Same,
    /// Enough parts show one write (M3).
    Landed,
    /// Enough parts have changed by nothing but own writes, and by the name of the next leader (M7).
    GoesOn,
    /// The holder has begun to release the lock. It leads no more, and its last lease runs on (M6).
    Leaves,
    /// Nobody holds enough parts (M4).
    Free,
    /// None of these: whoever holds a part bars all.
    Barred,
}

impl View {
    /// Creates the view of the candidate `identity` of a lock with these parts, before its first look. A leader needs
    /// `quorum` of them.
    #[must_use]
    pub fn new(identity: impl Into<String>, names: Vec<String>, quorum: usize) -> Self {
        let looked = (0..names.len()).collect();
        Self { identity: identity.into(), names, quorum, looked, ..Self::default() }
    }

    /// The name of the whole lock.
    pub(super) fn describe(&self) -> String {
        let parts = self.names.join(" and ");
        if self.quorum == self.names.len() { parts } else { format!("{} of {parts}", self.quorum) }
    }

    /// Begins a look. Returns the parts to wait for: nobody waits again for a part that has not answered the last look that
    /// waited for it.
    pub fn begin_look(&mut self) -> BTreeSet<usize> {
        let all: BTreeSet<usize> = (0..self.names.len()).collect();
        &all - &std::mem::replace(&mut self.silent_reads, all.clone())
    }

    /// Takes the news that a part has answered a read, whether a look still waits for it or not.
    pub fn has_answered(&mut self, part: usize) {
        self.silent_reads.remove(&part);
    }

    /// Ends a look that needs none of the parts that it waits for. They are slower than the others, and not silent.
    pub fn end_look(&mut self, awaited: &BTreeSet<usize>) {
        self.silent_reads.retain(|part| !awaited.contains(part));
    }

    /// Returns `true` if these answers are enough to show a record. Otherwise more answers may change the meaning, if there will be
    /// some.
    #[must_use]
    pub fn is_enough(&self, looks: &Looks, are_more_awaited: bool) -> bool {
        looks.len() >= self.quorum
            && (!are_more_awaited || self.is_decided(looks) && self.stranger(looks).is_none() && !self.differ(looks))
    }

    /// Another answer may show that the lock is free, or whose it is.
    fn is_decided(&self, looks: &Looks) -> bool {
        match self.verdict(looks).0 {
            Verdict::Barred | Verdict::Leaves => false,
            // The answers that were missing may be those of the parts that have changed.
            Verdict::Same => self.shown.as_ref().is_none_or(|shown| shown.is_one_write || shown.record.is_released()),
            Verdict::Landed | Verdict::GoesOn | Verdict::Free => true,
        }
    }

    /// Returns `true` if a holder cannot tell from these answers that it has lost the lock, because its last write may be in the
    /// parts that have not answered. Its own deadline ends its term in time.
    fn is_in_doubt(&mut self, looks: &Looks) -> bool {
        let may_hold = self.holds() && looks.len() < self.names.len() && !self.is_decided(looks);
        self.undecided = if may_hold { self.undecided.saturating_add(1) } else { 0 };
        (1..=UNDECIDED_LOOKS).contains(&self.undecided)
    }

    /// Returns `true` if the lock was shown as the candidate's own.
    pub(super) fn leads(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| !shown.record.is_released() && self.is_own(&shown.record))
    }

    /// The number of parts that a leader leaves alone until another term begins (M10).
    pub(super) fn left_out(&self) -> usize {
        let of = |Shown { record, parts, .. }: &Shown| {
            let is_out = |place: &&Place| !place.counts && !place.is_behind(record.leader_transitions);
            parts.0.values().filter(is_out).count()
        };
        self.shown.as_ref().filter(|_| self.leads()).map_or(0, of)
    }

    /// Returns `true` if the lock was shown as the candidate's own, and can be held without all parts.
    fn holds(&self) -> bool {
        self.quorum < self.names.len() && self.leads()
    }

    /// Returns what the answers to a look mean: the record that they show together, and what is new for people to know.
    ///
    /// # Errors
    ///
    /// The lock is that of candidates of other parts, or too few answers tell whether the candidate still holds it.
    pub fn look(&mut self, looks: &Looks) -> Result<(Option<VersionedRecord>, Option<Notice>), LockError> {
        if let Some(stranger) = self.stranger(looks) {
            return Err(stranger.refusal(self.describe()));
        }
        if self.is_in_doubt(looks) {
            let problem = "too few of its parts answer to tell who holds it";
            return Err(LockError::new(StoreErrorKind::Ambiguous, READ, self.describe(), problem));
        }
        Ok(self.show(looks))
    }

    /// Returns the record that these answers show together, and what is new for people to know.
    pub fn show(&mut self, looks: &Looks) -> (Option<VersionedRecord>, Option<Notice>) {
        // The version of all has existed since the latest of the writes.
        let age = looks.values().flatten().map(|found| found.age).min().flatten();
        let news = self.notice_of(looks);
        let (verdict, mut counted) = self.verdict(looks);
        let token = self.token(looks, verdict, &counted);
        counted.retain(|part| found(looks, *part).is_none_or(|half| Some(half.record.leader_transitions) <= token));
        let jobs = self.jobs(looks, &mut counted);
        self.looked = looks.keys().copied().collect();
        if let (Verdict::Same, Some(Shown { record, version, .. })) = (verdict, &self.shown) {
            return (Some(VersionedRecord::new(record.clone(), version.clone()).with_age(age)), news);
        }
        let parts = self.parts(looks, verdict, &counted);
        let version = parts.version();
        let is_one_write = matches!(verdict, Verdict::Landed | Verdict::GoesOn);
        let before = self.shown.as_ref().filter(|_| matches!(verdict, Verdict::GoesOn | Verdict::Leaves));
        let before = before.map(|shown| shown.record.clone());
        let record = self.record(looks, verdict, &counted, token, &version).map(|mut record| {
            // Nobody asks for the lease where the request would be a write of its own into all parts.
            record.rank = record.rank.filter(|_| is_one_write);
            // The election knows one lock, and the next write names the parts.
            record.parts = None;
            self.keep_claims(&mut record, (looks, &counted), jobs, before.as_ref());
            // A request that has reached one part is obeyed, and must not go uncounted.
            record.take_backs = records(looks).map(|half| half.take_backs).max().unwrap_or_default();
            record
        });
        self.own.iter_mut().for_each(|own| own.is_awaited = false);
        let found = record.as_ref().map(|record| VersionedRecord::new(record.clone(), version.clone()).with_age(age));
        self.shown = record.map(|record| Shown { record, version, parts, is_one_write });
        (found, news)
    }

    /// Returns the meaning of a look, and the parts that show it.
    fn verdict(&self, looks: &Looks) -> (Verdict, BTreeSet<usize>) {
        let enough = |is_one: &dyn Fn(usize) -> bool| {
            let those: BTreeSet<usize> = looks.keys().copied().filter(|part| is_one(*part)).collect();
            (those.len() >= self.quorum).then_some(those)
        };
        let half = |part: usize| Some(&found(looks, part)?.record);
        let is_own = |part: usize| half(part).is_some_and(|half| self.is_own(half));
        let leads = self.holds();
        if let Some(shown) = &self.shown
            && looks.keys().all(|part| shown.parts.shows(*part, looks))
            && let Some(those) = enough(&|part| shown.parts.counts(part))
        {
            return (Verdict::Same, those);
        }
        let is_free = |part| !leads && is_own(part) || half(part).is_none_or(LeaderElectionRecord::is_released);
        for written in records(looks).filter(|half| half.write_id.is_some()) {
            // A write id stands for no content: somebody may have written it beside another one (M12).
            let is_it = |part: usize| half(part).is_some_and(|half| is_one_write(half, written));
            if self.own_write(written).is_none_or(|own| own.is_awaited)
                && let Some(those) = enough(&is_it)
            {
                return (Verdict::Landed, those);
            }
        }
        if let Some(Shown { record, parts, .. }) = &self.shown {
            let stays = |part: usize| {
                let is_annotated = || half(part).is_some_and(|half| is_same_write(half, record));
                parts.counts(part) && (parts.shows(part, looks) || is_annotated())
            };
            // A part that was given back goes on with nobody's lease.
            let is_vacant = |part: usize| half(part).is_none_or(LeaderElectionRecord::is_released);
            if !record.is_released()
                && self.identity != record.holder_identity
                && let Some(those) = enough(&is_vacant)
            {
                return (Verdict::Free, those);
            }
            let goes_on = |part: usize| stays(part) || is_own(part);
            // No later term can have a majority beside a leader's part and those that are behind it, and neither can another
            // term with the same token (M10). Whoever releases a part of this term has its token, too.
            let is_behind = |part: usize| {
                leads
                    && half(part).is_none_or(|half| {
                        let is_of_term = half.is_released() && half.leader_transitions == record.leader_transitions;
                        half.leader_transitions <= record.leader_transitions && !is_of_term
                    })
            };
            if let Some(mut those) = enough(&|part| goes_on(part) || is_behind(part)) {
                // A former leader takes what nobody holds together with its own parts.
                let is_free = |part| half(part).is_none_or(LeaderElectionRecord::is_released);
                those.retain(|part| goes_on(*part) || is_free(*part));
                return (Verdict::GoesOn, those);
            }
            let is_held = |part: usize| {
                let is_theirs = |half: &LeaderElectionRecord| half.holder_identity == record.holder_identity;
                stays(part) && half(part).is_some_and(|half| !half.is_released() && is_theirs(half))
            };
            let is_left = |part: usize| {
                let is_of_term = |half: &LeaderElectionRecord| half.leader_transitions == record.leader_transitions;
                half(part).is_some_and(|half| half.is_released() && is_of_term(half))
            };
            if record.holder_identity != self.identity
                && let Some(those) = enough(&|part| is_held(part) || is_left(part))
                && looks.keys().any(|part| is_held(*part))
                && enough(&is_free).is_none()
            {
                return (Verdict::Leaves, those);
            }
        }
        enough(&is_free)
            .map_or_else(|| (Verdict::Barred, looks.keys().copied().collect()), |those| (Verdict::Free, those))
    }

    /// Returns what is known of the parts after a look. A part that has not answered is as it was, if its write still counts.
    fn parts(&self, looks: &Looks, verdict: Verdict, counted: &BTreeSet<usize>) -> Parts {
        let goes_on = |shown: &&Shown| match verdict {
            Verdict::Same | Verdict::GoesOn | Verdict::Leaves => true,
            Verdict::Landed => halves(looks, counted).any(|half| is_same_write(half, &shown.record)),
            Verdict::Free | Verdict::Barred => false,
        };
        let mut parts = self.shown.as_ref().filter(goes_on).map(|shown| shown.parts.clone()).unwrap_or_default();
        for (part, found) in looks {
            parts.0.insert(*part, Place::new(found.as_ref(), counted.contains(part)));
        }
        parts
    }

    /// The record of parts that were not shown before.
    fn record(
        &mut self,
        looks: &Looks,
        verdict: Verdict,
        counted: &BTreeSet<usize>,
        token: Option<u64>,
        version: &Version,
    ) -> Option<LeaderElectionRecord> {
        let leader_transitions = token?;
        let asks = |half: &&LeaderElectionRecord| {
            let shown = self.shown.as_ref().and_then(|shown| shown.record.write_id.as_ref());
            let is_asked = verdict == Verdict::Landed || half.write_id.as_ref() == shown;
            let asks_too = |other: &LeaderElectionRecord| other.preferred_holder == half.preferred_holder;
            self.quorum == self.names.len() || is_asked && self.counts(looks, asks_too)
        };
        let asked = halves(looks, counted).filter(asks).find_map(|half| half.preferred_holder.clone());
        match (verdict, &self.shown) {
            (Verdict::Landed, _) => {
                let landed = halves(looks, counted).next()?.clone();
                if counted.len() == self.names.len() && self.is_own(&landed) {
                    self.own.retain(|own| own.record.write_id == landed.write_id);
                }
                Some(LeaderElectionRecord { preferred_holder: asked, ..landed })
            }
            (Verdict::Same | Verdict::GoesOn | Verdict::Leaves, Some(Shown { record, .. })) => {
                let preferred_holder = record.preferred_holder.clone().or(asked);
                Some(LeaderElectionRecord { preferred_holder, ..record.clone() })
            }
            _ => {
                let others = halves(looks, counted).filter(|half| !self.is_own(half)).collect();
                Some(LeaderElectionRecord { leader_transitions, ..self.of_others(others, version) })
            }
        }
    }

    /// The record of parts that are not one write: whoever holds one of them bars all (M4).
    fn of_others(&self, others: Vec<&LeaderElectionRecord>, version: &Version) -> LeaderElectionRecord {
        let held = others.iter().filter(|half| !half.is_released());
        let lease_duration = held.map(|half| half.lease_duration).max().unwrap_or(RELEASED_LEASE);
        let front = others.into_iter().rev().max_by_key(|half| self.precedence(half));
        // No part is the whole, so no election may take the whole for its own write, or for a write that it knows. An old
        // write of this candidate is known by the beginning of its id.
        let write_id = front.and_then(|front| front.write_id.as_deref()).unwrap_or_default();
        LeaderElectionRecord {
            lease_duration,
            write_id: Some(format!("{write_id} {version}")),
            ..front.cloned().unwrap_or_else(|| LeaderElectionRecord::new("", RELEASED_LEASE))
        }
    }

    /// The order of two parts. The larger one says who leads. A lease of this candidate's earlier life must not hide
    /// the lease of another. The later term has the higher token.
    pub(super) fn precedence(&self, half: &LeaderElectionRecord) -> (bool, bool, u64) {
        let is_held = !half.is_released();
        (is_held && half.holder_identity != self.identity, is_held, half.leader_transitions)
    }

    pub(super) fn is_own(&self, half: &LeaderElectionRecord) -> bool {
        self.own_write(half).is_some()
    }

    fn own_write(&self, half: &LeaderElectionRecord) -> Option<&Own> {
        self.own.iter().find(|own| is_same_write(half, &own.record))
    }
}

/// The records of a look.
pub(super) fn records(looks: &Looks) -> impl Iterator<Item = &LeaderElectionRecord> {
    looks.values().flatten().map(|found| &found.record)
}

/// The records of these parts, the last first.
pub(super) fn halves<'a>(
    looks: &'a Looks,
    those: &'a BTreeSet<usize>,
) -> impl Iterator<Item = &'a LeaderElectionRecord> {
    those.iter().rev().filter_map(|part| Some(&found(looks, *part)?.record))
}
