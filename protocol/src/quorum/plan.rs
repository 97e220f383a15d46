//! How one write of a lease becomes puts into n parts, and what their answers mean together (rules M2, M3, M6, M7 and M10).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{KnownPart, ObservedWhole, OwnWrite, Part, Quorum, whole};
use crate::record::{Content, InParts, RELEASED_LEASE, Record, Versioned};

/// How many of our own writes are remembered. A forgotten one is treated as another candidate's, which costs a wait for its lease.
const REMEMBERED_WRITES: usize = 64;

/// Why a write cannot be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplanned {
    /// The version to replace is not a version of the whole.
    UnknownVersion,
    /// The write is a request to lead next, and the parts that count do not all show the same write (M9).
    NotOneWrite,
}

/// Why a put failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The part has another version.
    Conflict,
    /// Any other failure. The put may have been committed, or may be committed later.
    Other,
}

/// A conditional write to one part. Only a [`Plan`] or a [`Quorum`] creates one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Put<R: Record> {
    part: Part,
    record: Arc<R>,
    expected: Option<R::Version>,
}

impl<R: Record> Put<R> {
    /// The part.
    #[must_use]
    pub fn part(&self) -> Part {
        self.part
    }

    /// The record to write.
    #[must_use]
    pub fn record(&self) -> &Arc<R> {
        &self.record
    }

    /// The version to replace; `None` creates the object.
    #[must_use]
    pub fn expected(&self) -> Option<&R::Version> {
        self.expected.as_ref()
    }
}

/// The puts of one write of the lease, and their outcomes so far. [`Quorum::plan`] creates it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan<R: Record> {
    /// The record without the fields that only copies in parts have.
    record: Arc<R>,
    /// The puts that are not sent yet, in order.
    puts: VecDeque<Put<R>>,
    /// The parts that a leader's renewal does not write, because their versions are unknown.
    pub(super) unknown: Vec<Part>,
    /// The parts in which the write is committed, with the versions that it produced.
    written: BTreeMap<Part, R::Version>,
    /// The parts that have not answered their puts.
    open: BTreeSet<Part>,
    /// `true` if each put is sent after the answer to the one before, `false` if all are sent at once.
    in_turn: bool,
    needed: usize,
}

impl<R: Record> Plan<R> {
    /// The record of the whole.
    #[must_use]
    pub fn record(&self) -> &Arc<R> {
        &self.record
    }

    /// The puts that are not sent yet, in order. A policy may change the order: the worst that can happen is that two candidates keep each
    /// other from leading.
    pub fn puts(&mut self) -> &mut [Put<R>] {
        self.puts.make_contiguous()
    }

    /// The parts that have not answered their puts.
    pub fn open(&self) -> impl Iterator<Item = Part> {
        self.open.iter().copied()
    }

    /// The parts in which the write is committed.
    pub fn written(&self) -> impl ExactSizeIterator<Item = Part> {
        self.written.keys().copied()
    }

    /// Returns `true` if the write is committed in q parts.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        self.written.len() >= self.needed
    }

    /// Returns `true` if each put is sent after the answer to the one before (M2).
    #[must_use]
    pub fn is_in_turn(&self) -> bool {
        self.in_turn
    }

    /// Returns the next put that is to be sent now; `None` if all are sent, or an answer is needed first.
    pub fn send(&mut self) -> Option<Put<R>> {
        if self.in_turn && !self.open.is_empty() {
            return None;
        }
        let put = self.puts.pop_front()?;
        self.open.insert(put.part);
        Some(put)
    }

    /// Takes the answer of a part (M2, M3 and M6). Returns `Some(true)` if the write is committed in q parts; a release
    /// also waits for all answers. Returns `Some(false)` if too few parts are left. Otherwise `None`.
    pub fn answered(&mut self, part: Part, answer: Result<R::Version, Failed>) -> Option<bool> {
        self.open.remove(&part);
        match answer {
            Ok(version) => {
                self.written.insert(part, version);
            }
            // Leaves the other parts to the candidate that was faster here.
            Err(Failed::Conflict) if self.in_turn => self.puts.clear(),
            Err(_) => {}
        }
        if self.is_committed() {
            // A release continues: if all parts are needed or another part is silent, an unreleased part makes the next leader wait for one
            // lease.
            let is_all = self.open.is_empty() && self.puts.is_empty();
            return (self.record.holder().is_some() || is_all).then_some(true);
        }
        (self.written.len() + self.open.len() + self.puts.len() < self.needed).then_some(false)
    }

    /// Queues a put of this plan once more, behind the others. Call this before [`answered`](Self::answered) takes the
    /// failure, which may end the plan.
    pub fn send_again(&mut self, put: Put<R>) {
        self.puts.push_back(put);
    }

    /// Takes the unsent puts of a committed write. Send them, and hand in their answers with [`Quorum::observe_part`] (M10).
    pub fn rest(&mut self) -> impl Iterator<Item = Put<R>> {
        std::mem::take(&mut self.puts).into_iter()
    }
}

impl<R: InParts> Quorum<R> {
    /// M2, M6, M10: plans the puts of a write, each on the version that was read, in the order that all candidates share.
    ///
    /// - A takeover or release replaces only the parts that count, because nobody has waited for the leases in the others to expire. A
    ///   takeover skips the parts in `avoided`.
    /// - A leader's renewal also writes the parts behind its term, and reads those whose versions are unknown.
    /// - A release begins with the last part, so a candidate that takes the first part finds the others free.
    ///
    /// # Errors
    ///
    /// `expected` is not a version of the whole, or the write is a request and the parts do not all show the same write.
    pub fn plan(
        &mut self,
        record: &Arc<R>,
        expected: Option<&R::Version>,
        avoided: &BTreeSet<Part>,
    ) -> Result<Plan<R>, Unplanned> {
        let is_release = record.holder().is_none();
        let is_request = !is_release && record.holder() != Some(&self.me);
        if !is_request {
            self.remember(Arc::clone(record));
        }
        let shown = self.shown.as_ref().filter(|shown| expected == Some(&shown.found.version));
        // A request keeps the write id, by which the holder recognizes its copies. So all parts that count must have that id.
        if is_request && !shown.is_some_and(|shown| shown.is_one_write) {
            return Err(Unplanned::NotOneWrite);
        }
        let is_mine = |record: &R| record.holder() == Some(&self.me);
        let renews = is_mine(record)
            && shown.is_some_and(|shown| is_mine(shown.record()) && shown.record().token() == record.token());
        let is_written = |part: &Part, known: &KnownPart<R>| match known.counts {
            true => renews || is_release || !avoided.contains(part),
            false => renews && known.is_writable(record.token()),
        };
        let versions: BTreeMap<Part, Option<R::Version>> = match (shown, expected) {
            (Some(shown), _) => {
                let written = shown.known.iter().filter(|(part, known)| is_written(part, known));
                written.map(|(part, known)| (*part, known.version.clone())).collect()
            }
            // The version of an earlier poll. If a part has changed since, the precondition of its put fails.
            (None, Some(version)) => R::counted_in(version).ok_or(Unplanned::UnknownVersion)?,
            (None, None) => (0..self.size).filter(|part| !avoided.contains(part)).map(|part| (part, None)).collect(),
        };
        let is_unknown = |part: &Part| renews && shown.is_some_and(|shown| !shown.known.contains_key(part));
        let unknown = (0..self.size).filter(is_unknown).collect();
        // A release that is tried again skips the parts that it has already released. A second release there would
        // change the version, and a takeover on the version of the first would fail.
        let written = shown.filter(|_| is_release).map(|shown| self.released(record, shown)).unwrap_or_default();
        let versions = versions.into_iter().filter(|(part, _)| !written.contains_key(part));
        let mut puts = self.puts(record, versions);
        if is_release {
            puts.reverse();
        }
        // If two candidates take the parts one by one, in the same order, one of them gets all. A leader excludes
        // others already, so it writes all parts at once, unless it needs all: then another may hold one of them.
        let in_turn = self.needed == self.size || !(renews || is_release);
        Ok(Plan {
            record: Arc::clone(record),
            puts: puts.into(),
            unknown,
            written,
            open: BTreeSet::new(),
            in_turn,
            needed: self.needed,
        })
    }

    /// M6: the parts that show an earlier attempt of this release, with their versions.
    fn released(&self, record: &R, shown: &ObservedWhole<R>) -> BTreeMap<Part, R::Version> {
        let is_same = |copy: &R| {
            self.is_own(copy)
                && copy.holder().is_none()
                && copy.token() == record.token()
                && copy.preferred() == record.preferred()
                && copy.marks() == record.marks()
        };
        let is_released = |known: &KnownPart<R>| known.counts && known.kept_copy.as_deref().is_some_and(is_same);
        let released = shown.known.iter().filter(|(_, known)| is_released(known));
        released.filter_map(|(part, known)| Some((*part, known.version.clone()?))).collect()
    }

    /// M3: takes the outcome of a write. If it was committed in q parts, returns the version of the whole, which is the answer to the
    /// lease's write; otherwise `None`.
    pub fn wrote(&mut self, plan: &Plan<R>) -> Option<R::Version> {
        let Plan { record, written, unknown, .. } = plan;
        if written.len() < self.needed {
            return None;
        }
        if written.len() == self.size {
            self.forget_all_but(record.write_id());
        }
        // A new term forgets the parts that it has not written. They are read again, so in each term, people are warned
        // of the parts above its token.
        let is_of_term = |shown: &ObservedWhole<R>| shown.record().token() == record.token();
        let mut parts = self.shown.take().filter(is_of_term).map(|shown| shown.known).unwrap_or_default();
        // Keeps the parts to which this write sends no put: those that were unknown and have answered since, and those
        // above the term's token. The known versions of all other parts are out of date: these parts are being written,
        // or have changed and rejected the put.
        parts.retain(|part, known| unknown.contains(part) || !known.counts && !known.is_writable(record.token()));
        let written_as =
            |version: &R::Version| KnownPart { version: Some(version.clone()), counts: true, kept_copy: None };
        parts.extend(written.iter().map(|(part, version)| (*part, written_as(version))));
        let version = whole(&parts);
        let found = Versioned { record: Arc::clone(record), version: version.clone() };
        self.shown = Some(ObservedWhole { found, known: parts, is_one_write: true });
        Some(version)
    }

    /// M7: the puts that roll back a takeover that has taken too few parts, in the opposite order. Other writes are not rolled back: a
    /// renewal belongs to a term that continues, and a request in some parts belongs to the leader that is asked.
    ///
    /// From now on, the takeover gives no leadership, even if an answer or a read shows it in all parts: the store may commit its other
    /// puts late, and the rollback even later.
    pub fn roll_back(&mut self, Plan { record, written, .. }: Plan<R>) -> Vec<Put<R>> {
        // Only a takeover has a token above the shown one.
        let shown = self.shown.as_ref().map(|shown| shown.record().token());
        if written.is_empty() || shown >= Some(record.token()) {
            return Vec::new();
        }
        let rollback = Arc::new(record.rolled_back(Content {
            holder: None,
            lease_duration: RELEASED_LEASE,
            write_id: record.write_id().map(R::id_of_rollback),
            ..Content::of(&*record)
        }));
        self.own.iter_mut().for_each(|own| own.is_awaited = false);
        self.remember(Arc::clone(&rollback));
        self.puts(&rollback, written.iter().rev().map(|(part, version)| (*part, Some(version.clone()))))
    }

    pub(super) fn puts(
        &self,
        record: &R,
        versions: impl IntoIterator<Item = (Part, Option<R::Version>)>,
    ) -> Vec<Put<R>> {
        let record = Arc::new(record.in_each_part(&self.names));
        versions.into_iter().map(|(part, expected)| Put { part, record: Arc::clone(&record), expected }).collect()
    }

    /// Remembers a write of our own that is about to be sent. A request is not our own: it keeps the write id of the holder.
    fn remember(&mut self, record: Arc<R>) {
        self.own.push_back(OwnWrite { record, is_awaited: true });
        if self.own.len() > REMEMBERED_WRITES {
            self.own.pop_front();
        }
    }
}
