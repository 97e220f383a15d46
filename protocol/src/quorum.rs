//! One lease in n objects, its *parts*, of which a leader needs q: more than half (rules M1 to M7, M9, M10 and M12 of docs/protocol.md).
//!
//! - A *copy* is the record of one part. It is our *own* if this process wrote it. An earlier process with our identity is somebody else.
//! - The quorum makes one record of what some parts show, and shows it to the lease. These parts *count*. A *takeover*, the first write of
//!   a term, replaces only parts that count.
//! - A part is *behind* a term if its token is at most the term's. The leader of that term may write over it.
//!
//! A [`Quorum`] shows its parts to a [`Lease`](crate::lease::Lease) as if they were one object. It has no clock and ends no term: the
//! lease applies its rules unchanged to the record and version that the quorum shows.
//!
//! ```text
//!   Lease -- Write --> plan -- Plan --> Put, Put, Put --> the parts
//!         <- version -- wrote <-- Plan <-- their answers <--+
//!         <- Versioned -- polled <-- ObservedParts <-- their answers <-- reads
//! ```
//!
//! What the lease does after a poll depends on the version and the record that the quorum shows:
//!
//! - *The version of the whole* combines all known versions of parts, and which of these parts count. So it changes whenever a poll finds
//!   a changed part. When the lease sees a new version, it begins a wait (rules 1 and 2), drops its own unanswered writes, and makes its
//!   next write on the new version.
//! - *The same write* is an exception. If a new version comes with the id, holder, token and lease of the record before, nothing was
//!   renewed (rule 14): the wait continues, and the holder is the same. If it comes with those of one of the lease's own unanswered
//!   writes, that write was committed (rule 6).
//!
//! Parts change one after the other, so one renewal causes several versions. It must start only one wait, so the record decides:
//!
//! - [`Continues`](Verdict::Continues) and [`HandingOver`](Verdict::HandingOver) show the same write as before: the wait continues.
//! - [`Committed`](Verdict::Committed) shows a write that q parts have: a wait begins if the lease did not know that write.
//! - [`Free`](Verdict::Free) and [`Blocked`](Verdict::Blocked) show a record whose id belongs to no write, and differs for each version.
//!   `Free` needs no wait; `Blocked` begins one.
//!
//! For exclusion and growing tokens, each part that is not *hostile* must fulfil the assumptions of a single lease. In addition:
//!
//! - Any two candidates have the same parts and q, or at least any q parts of the one overlap with any q parts of the other (M8).
//! - Fewer than 2q - n parts are hostile, which means that anything may be written into them (M12). If two of three parts are needed,
//!   none may be hostile. A part that was restored from a backup, or whose object was deleted, counts as hostile.
//! - No write id is used twice, and each answer is handed in for the part and the put to which it belongs.
//!
//! A policy chooses which answers to wait for, the order of the puts, whether to try again, and whether to roll back a write that took too
//! few parts. If it never sends a put, that counts as a lost request. The types cannot check the following, so the policy has to:
//!
//! - Use one [`Quorum`] for one lease, and give the lease the answer to its write before the next poll.
//! - Send each put once, and hand in its answer for its own plan and part. To repeat a failed put, call [`Plan::send_again`] before
//!   [`Plan::answered`] takes the failure, which may end the plan.
//! - Hand in each background answer together with the record of the write that caused its put or read ([`Quorum::observe_part`]).
//!
//! Two candidates may write the same token into different parts, but only one of them gets q parts.

mod background;
mod plan;
mod show;
mod visit;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::record::{InParts, Record, Versioned, is_same_write};

pub use plan::{Failed, Plan, Put, Unplanned};

/// How far failed acquisitions may raise one part's token above those of q others.
const MAX_TOKEN_GAP: u64 = 1 << 20;

/// The number of a part. Every candidate takes the parts in this order (M2).
pub type Part = usize;

/// The answer of a part to a read.
#[derive(Clone, Debug)]
pub struct ObservedPart<'a, R: Record> {
    /// The content.
    pub record: &'a R,
    /// Its version.
    pub version: &'a R::Version,
    /// Its age by the store's clock, if the store reports it (rule 19).
    pub age: Option<Duration>,
}

/// The answers to a poll so far, by part; `None` for a part without an object.
#[derive(Clone, Debug)]
pub struct ObservedParts<'a, R: Record>(pub BTreeMap<Part, Option<ObservedPart<'a, R>>>);

impl<'a, R: Record> ObservedParts<'a, R> {
    fn parts(&self) -> impl Iterator<Item = Part> {
        self.0.keys().copied()
    }

    fn answer(&self, part: Part) -> Option<&ObservedPart<'a, R>> {
        self.0.get(&part)?.as_ref()
    }

    /// The copy of a part, if it has one.
    fn copy(&self, part: Part) -> Option<&'a R> {
        self.answer(part).map(|seen| seen.record)
    }

    /// The copies of these parts, in their order.
    fn copies(&self, those: &BTreeSet<Part>) -> impl DoubleEndedIterator<Item = &'a R> {
        those.iter().filter_map(|part| self.copy(*part))
    }

    fn all(&self) -> impl Iterator<Item = &'a R> {
        self.0.values().flatten().map(|seen| seen.record)
    }

    /// Returns `true` if nobody holds the part.
    fn is_free(&self, part: Part) -> bool {
        self.copy(part).is_none_or(|copy| copy.holder().is_none())
    }
}

/// Fewer than q parts have answered, so the poll shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew;

/// What a poll means: the first case that applies. The parts that its bold text describes count, unless the text after it says otherwise.
///
/// Several cases may fit one poll, and safety depends on their order. In these examples, q is 2 of three parts A, B and C, and a holder's
/// write w2 follows its w1:
///
/// - `Same` before all others: A and B show our w1, and our unanswered w2 is still in flight. `Continues` fits as well. But after any other
///   case than `Same`, w2 is no longer considered for `Committed`, so the lease would never learn that w2 is committed later.
/// - `Committed` before `Continues`: our w2 is in A and B, but both answers were lost. `Continues` fits as well, because both copies are
///   our own. It would show w1, so the lease would never learn that w2 is committed.
/// - `Continues` before `HandingOver`: another holder has crashed with w2 in A and w1 in B, and our own takeover has reached only C. Both
///   cases fit A and B, but only `Continues` also counts C. After `HandingOver`, our next takeover would leave C out.
/// - `Continues` before `Free` and `Blocked`: A has our w2, B our w1, and C is silent. `Blocked` ignores our own copies (and if there were
///   only A and B, `Free` would take them for free), so our term would end. Or A has our failed takeover, and B still has the write of its
///   holder. `Blocked` would restart the wait for that holder.
/// - `HandingOver` before `Free`: a holder has A and B, and C has no object. An operator releases B. Now B and C are free, but the
///   holder's window may still be open.
/// - `HandingOver` before `Blocked`: a holder releases one part after the other. `Blocked` would restart the wait with each.
/// - `Free` before `Blocked` (which fits every poll): a candidate has crashed while it held A, and B and C are free. As q parts are free,
///   it has at most n - q, which are fewer than q, so it cannot lead, and nobody has to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// M1: **no part that has answered has changed, and q of them count.** Shows the same record and version as before.
    Same,
    /// M3: **q parts show one write.** Shows that write.
    ///
    /// One of our own writes is considered only while the lease waits for its outcome. This wait ends with the first poll that is not
    /// `Same`. A write that is being rolled back is never considered (M7).
    Committed,
    /// M7, M10: **q parts are as before, except for our own writes and for requests to lead next** (rule 14). Shows the same record as
    /// before.
    ///
    /// If we may be leading with only some parts, the q parts may include some behind our term, of which only the free ones count. Parts
    /// behind our term do not endanger it: a later term writes a higher token into each of its parts, and the token of a part never falls.
    /// So a later term has at most the n - q other parts, which are fewer than q.
    Continues,
    /// M6: **q parts are released by another holder, or still held by it as before.** Fewer than q are released. Shows the same record as
    /// before: the lease still counts from the holder's last renewal.
    HandingOver,
    /// M4: **q parts have no holder.** Shows a record without a holder, or none if there is no object. Its token is the q-th smallest of
    /// those parts, or the highest if q of them have no object (M5). A part whose token is far above those of q others is not among them.
    /// Our own copies count as free, unless we may be leading with only some parts.
    Free,
    /// M4: **anything else: whoever holds a part blocks the lock.** All parts that have answered count, except those whose tokens are above
    /// the q-th smallest (M5). Shows that token, the holder with the highest token, and the longest of the leases.
    ///
    /// Our own copies are ignored; if nobody else holds a part, the record has no holder. A holder with our identity, which is an earlier
    /// process, is shown only if there is no other: its lease must not hide that of another holder.
    Blocked,
}

/// What one candidate knows of one lease in several objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quorum<R: InParts> {
    me: R::Identity,
    names: R::Parts,
    size: usize,
    needed: usize,
    shown: Option<ObservedWhole<R>>,
    /// Our own writes that some part may show now or later, oldest first.
    own: VecDeque<OwnWrite<R>>,
}

/// The record and version that were shown last, and what is known of the parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ObservedWhole<R: InParts> {
    found: Versioned<R>,
    known: KnownParts<R>,
    /// `true` if every part that counts shows this same write. A request to lead next keeps the write's id, by which the holder recognizes
    /// its own record. So a request is possible only if all these parts have that id (M9).
    is_one_write: bool,
}

/// The parts whose versions are known.
type KnownParts<R> = BTreeMap<Part, KnownPart<R>>;

/// One part as it was last seen or written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct KnownPart<R: InParts> {
    /// `None` if there is no object.
    version: Option<R::Version>,
    /// `true` if the part counts, so a takeover may replace it.
    counts: bool,
    /// The copy, if the part does not count, or nobody holds it. It is kept for two uses: a leader compares its token with that of the term
    /// (M10), and a release that is tried again skips the parts that it has released before (M6).
    uncounted_or_free: Option<Arc<R>>,
}

/// One of our own writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OwnWrite<R: InParts> {
    record: Arc<R>,
    /// `true` while the lease waits for the outcome of the write.
    is_awaited: bool,
}

impl<R: InParts> Quorum<R> {
    /// Creates the view of the candidate `me` before its first poll. A leader needs `needed` of `size` parts; a number below the smallest
    /// majority is raised to it.
    pub fn new(me: R::Identity, names: R::Parts, size: usize, needed: usize) -> Self {
        Self { me, names, size, needed: needed.max(size / 2 + 1), shown: None, own: VecDeque::new() }
    }

    // ---- What a policy sees ----

    /// The number q of parts that a leader needs.
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// Returns `true` if the last record that was shown is a write of this candidate, whether it still leads or not.
    pub fn is_shown_as_holder(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.record().holder().is_some() && self.is_own(shown.record()))
    }

    /// Returns `true` if the record that was shown last is one write, or has no holder. Otherwise, a poll should wait for further answers
    /// even if it is `Same`: another part may have been freed, and so free the lock.
    pub fn is_one_write_or_free(&self) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.is_one_write || shown.record().holder().is_none())
    }

    /// M10: the number of parts that a leader does not write until another term begins, because their tokens are above its own.
    pub fn left_out(&self) -> usize {
        let Some(shown) = self.shown.as_ref().filter(|_| self.is_shown_as_holder()) else { return 0 };
        shown.known.values().filter(|known| !known.is_writable(shown.record().token())).count()
    }

    /// Returns `true` if a part shows one of our own writes.
    pub fn is_own(&self, copy: &R) -> bool {
        self.own_write(copy).is_some()
    }

    /// Returns `true` if the answer of a part differs from what was known of it.
    pub fn has_changed(&self, observed: &ObservedParts<'_, R>, part: Part) -> bool {
        self.shown.as_ref().is_some_and(|shown| !shown.knows(part, observed))
    }

    /// M4: a key by which to order copies; the largest is shown. Copies that another identity holds are above those that ours holds, and
    /// these are above free ones. Then the higher token decides.
    pub fn precedence(&self, copy: &R) -> (bool, bool, u64) {
        let is_held = copy.holder().is_some();
        (is_held && copy.holder() != Some(&self.me), is_held, copy.token())
    }

    // ---- Polls ----

    /// Takes the answers to a poll. Returns the record that the parts show together, with the version of the whole and its age.
    ///
    /// # Errors
    ///
    /// Too few parts have answered.
    pub fn polled(
        &mut self,
        observed: &ObservedParts<'_, R>,
    ) -> Result<(Option<Versioned<R>>, Option<Duration>), TooFew> {
        // A part that has not answered may show another holder, or a write that q parts have.
        if observed.0.len() < self.needed {
            return Err(TooFew);
        }
        // Rule 19: the whole is as old as its youngest part. If one part has no age, the whole has none.
        let age = observed.0.values().flatten().map(|seen| seen.age).min().flatten();
        let (verdict, mut counted) = self.verdict(observed);
        if let (Verdict::Same, Some(shown)) = (verdict, &self.shown) {
            return Ok((Some(shown.found.clone()), age));
        }
        // M5: after `Free` and `Blocked`, a new term may begin, with a token above the one shown: the q-th smallest, or the highest if q
        // parts have no object. In the other cases, no part may be dropped, so the highest token of all is used.
        let highest = || observed.copies(&counted).map(Record::token).max();
        let token = match verdict {
            Verdict::Free | Verdict::Blocked => self.quorum_token(observed, counted.iter().copied()).or_else(highest),
            _ => observed.all().map(Record::token).max(),
        };
        // The order matters. First, the parts above the token are dropped. M12 then drops parts with a job's mark that q parts are without,
        // but only if q others remain; a part above the token cannot be one of these. The version is last: it says which parts count.
        counted.retain(|part| observed.copy(*part).is_none_or(|copy| Some(copy.token()) <= token));
        let marks = self.marks(observed, &mut counted);
        let known = self.known_parts(observed, verdict, &counted);
        let version = whole(&known);
        let is_one_write = self.shows_one_write(observed, verdict, &counted);
        let record =
            token.and_then(|token| self.record(observed, (verdict, is_one_write), (&counted, token), marks, &version));
        let committed =
            observed.copies(&counted).next().filter(|_| verdict == Verdict::Committed && counted.len() == self.size);
        if let Some(committed) = committed.filter(|committed| self.is_own(committed)) {
            self.forget_all_but(committed.write_id());
        }
        // Only `Same` surely keeps the version. When the lease sees another one, it no longer waits for its own writes.
        self.own.iter_mut().for_each(|own| own.is_awaited = false);
        let found = record.map(|record| Versioned { record: Arc::new(record), version });
        self.shown = found.clone().map(|found| ObservedWhole { found, known, is_one_write });
        Ok((found, age))
    }

    /// M9: returns `true` if all parts that count show the same write. After `Continues`, they may show different ones, or some of our own.
    /// A request would then replace a copy of one write with a copy of another, although nobody has waited out the replaced lease.
    fn shows_one_write(&self, observed: &ObservedParts<'_, R>, verdict: Verdict, counted: &BTreeSet<Part>) -> bool {
        let before = self.shown.as_ref().filter(|shown| shown.is_one_write);
        let is_it = |part: &Part| before.is_some_and(|shown| shown.is_shown_by(*part, observed));
        verdict == Verdict::Committed || verdict == Verdict::Continues && counted.iter().all(is_it)
    }

    /// Returns what a poll means, and the parts that count. [`polled`](Self::polled) removes some of them.
    pub fn verdict(&self, observed: &ObservedParts<'_, R>) -> (Verdict, BTreeSet<Part>) {
        // The shown record may come from a poll with fewer answers. It is ignored if its token is far above those of q parts in this poll.
        let shown = self.shown.as_ref().filter(|shown| !self.is_far_above(observed, shown.record().token()));
        // M6: a holder that has released q parts blocks nobody, even if another part has rejected its release. A part in which a later
        // takeover was rolled back counts as released, too.
        let unreleased = shown.filter(|shown| !self.is_released(observed, shown.record()));
        let of = |case: Verdict, those: Option<BTreeSet<Part>>| Some((case, those?));
        of(Verdict::Same, shown.and_then(|shown| self.unchanged(observed, shown)))
            .or_else(|| of(Verdict::Committed, self.committed_in(observed)))
            .or_else(|| of(Verdict::Continues, self.going_on(observed, unreleased?)))
            .or_else(|| of(Verdict::HandingOver, self.handing_over(observed, unreleased?)))
            .or_else(|| of(Verdict::Free, self.free(observed)))
            .unwrap_or_else(|| (Verdict::Blocked, observed.parts().collect()))
    }

    /// The parts that satisfy a condition, if they are at least q.
    fn enough(&self, observed: &ObservedParts<'_, R>, fits: impl Fn(Part) -> bool) -> Option<BTreeSet<Part>> {
        let those: BTreeSet<Part> = observed.parts().filter(|part| fits(*part)).collect();
        (those.len() >= self.needed).then_some(those)
    }

    /// See [`Verdict::Same`].
    fn unchanged(&self, observed: &ObservedParts<'_, R>, shown: &ObservedWhole<R>) -> Option<BTreeSet<Part>> {
        self.enough(observed, |part| shown.counts(part)).filter(|_| shown.is_unchanged(observed))
    }

    /// See [`Verdict::Committed`].
    fn committed_in(&self, observed: &ObservedParts<'_, R>) -> Option<BTreeSet<Part>> {
        let may_count =
            |written: &&R| written.write_id().is_some() && self.own_write(written).is_none_or(|own| own.is_awaited);
        observed.all().filter(may_count).find_map(|written| {
            // M12: an id does not prove the content, because somebody may have copied it into another record.
            let is_it = |copy: &R| is_same_write(copy, written) && copy.describes_as(written);
            self.enough(observed, |part| observed.copy(part).is_some_and(is_it))
        })
    }

    /// See [`Verdict::Continues`].
    fn going_on(&self, observed: &ObservedParts<'_, R>, shown: &ObservedWhole<R>) -> Option<BTreeSet<Part>> {
        let goes_on =
            |part: Part| shown.stays(part, observed) || observed.copy(part).is_some_and(|copy| self.is_own(copy));
        // M10: a part behind the term is harmless: it belongs to no other term that can lead. There is one exception: if the part was
        // released with the term's token, an operator may have ended this term there. A takeover that a rival has rolled back looks like
        // such a release, but is harmless.
        let may_lead = self.may_lead_with_some();
        let token = shown.record().token();
        let is_rolled_back = |copy: &R| copy.write_id().is_some_and(R::is_of_rollback);
        let is_harmless = |copy: &R| {
            copy.token() < token || copy.token() == token && (copy.holder().is_some() || is_rolled_back(copy))
        };
        let mut those =
            self.enough(observed, |part| goes_on(part) || may_lead && observed.copy(part).is_none_or(is_harmless))?;
        // A former leader may next take over the parts that count. So these must be its own or free: nobody has waited for other holders.
        those.retain(|part| goes_on(*part) || observed.is_free(*part));
        Some(those)
    }

    /// See [`Verdict::HandingOver`].
    fn handing_over(&self, observed: &ObservedParts<'_, R>, shown: &ObservedWhole<R>) -> Option<BTreeSet<Part>> {
        let record = shown.record();
        let holder = record.holder().filter(|holder| **holder != self.me)?;
        let is_theirs = |copy: &R| copy.holder() == Some(holder);
        let is_held = |part: Part| shown.stays(part, observed) && observed.copy(part).is_some_and(is_theirs);
        // A release keeps the token. A rival's takeover that was rolled back may have it, too, but only where the holder's term wrote
        // nothing (over the term's token, a rival writes a higher one). So such a part hides no renewal.
        let is_released = |copy: &R| copy.holder().is_none() && copy.token() == record.token();
        let those = self.enough(observed, |part| is_held(part) || observed.copy(part).is_some_and(is_released))?;
        observed.parts().any(is_held).then_some(those)
    }

    /// M6: returns `true` if q parts have no holder, and the token of the shown term or a later one. A part with an older token or without
    /// an object says nothing about this term.
    fn is_released(&self, observed: &ObservedParts<'_, R>, record: &R) -> bool {
        let is_released = |copy: &&R| copy.holder().is_none() && copy.token() >= record.token();
        let is_others = record.holder().is_some_and(|holder| *holder != self.me);
        is_others && observed.all().filter(is_released).count() >= self.needed
    }

    /// See [`Verdict::Free`]. A part that still shows the leader's own write is not free for this leader, because it has not lost the part.
    fn free(&self, observed: &ObservedParts<'_, R>) -> Option<BTreeSet<Part>> {
        let may_lead = self.may_lead_with_some();
        self.enough(observed, |part| {
            let is_nobodys =
                !may_lead && observed.copy(part).is_some_and(|copy| self.is_own(copy)) || observed.is_free(part);
            is_nobodys && observed.copy(part).is_none_or(|copy| !self.is_far_above(observed, copy.token()))
        })
    }

    /// M5: returns `true` if a token is far above those of q parts. Somebody who can write one part may have used up its tokens. Such a
    /// part does not count as free, so candidates still wait for the holders of the others.
    fn is_far_above(&self, observed: &ObservedParts<'_, R>, token: u64) -> bool {
        // If q parts have no object, there is no q-th smallest token. The next term may have the first one, so 0 stands for it.
        token > self.quorum_token(observed, observed.parts()).unwrap_or(0).saturating_add(MAX_TOKEN_GAP)
    }

    /// Returns `true` if this candidate may be leading with only some parts: the lease was shown as its own, and it has not tried to begin
    /// a later term since. Once it has tried, it waits for the holders of all parts, like any other candidate.
    fn may_lead_with_some(&self) -> bool {
        // If all parts are needed, nobody else can lead while this candidate has one of them, so there is nothing to count.
        let token = self.shown.as_ref().map(|shown| shown.record().token());
        let has_tried = || self.own.iter().any(|own| Some(own.record.token()) > token);
        self.needed < self.size && self.is_shown_as_holder() && !has_tried()
    }

    fn own_write(&self, copy: &R) -> Option<&OwnWrite<R>> {
        self.own.iter().find(|own| is_same_write(copy, &*own.record))
    }

    /// M1: what is known of the parts after a poll. The cases below say when a silent part is assumed to be unchanged.
    fn known_parts(
        &self,
        observed: &ObservedParts<'_, R>,
        verdict: Verdict,
        counted: &BTreeSet<Part>,
    ) -> KnownParts<R> {
        let is_committed =
            |shown: &ObservedWhole<R>| observed.copies(counted).any(|copy| is_same_write(copy, shown.record()));
        let known = |shown: &ObservedWhole<R>| match verdict {
            Verdict::Same | Verdict::Continues | Verdict::HandingOver => shown.known.clone(),
            // Only if every part that counted before showed this write. Otherwise, the mark of a release in a silent part could be missed.
            Verdict::Committed if shown.is_one_write && is_committed(shown) => shown.known.clone(),
            // No part has changed, but some are silent. If they answer again as before, the wait must not restart.
            Verdict::Blocked if shown.is_one_write && shown.is_unchanged(observed) => {
                let uncounted = |known: &KnownPart<R>| KnownPart { counts: false, ..known.clone() };
                shown.known.iter().map(|(part, known)| (*part, uncounted(known))).collect()
            }
            // Another record is shown now, so what was known of a silent part is out of date.
            Verdict::Committed | Verdict::Free | Verdict::Blocked => KnownParts::new(),
        };
        let seen = observed.parts().map(|part| (part, KnownPart::new(observed.answer(part), counted.contains(&part))));
        self.shown.iter().flat_map(known).chain(seen).collect()
    }

    /// Forgets all writes before one that is now in every part. They can no longer be committed, because each names a version that is
    /// gone.
    fn forget_all_but(&mut self, write_id: Option<&R::WriteId>) {
        self.own.retain(|own| own.record.write_id() == write_id);
    }
}

impl<R: InParts> ObservedWhole<R> {
    fn record(&self) -> &R {
        &self.found.record
    }

    fn counts(&self, part: Part) -> bool {
        self.known.get(&part).is_some_and(|known| known.counts)
    }

    /// Returns `true` if a part shows the version that was known before.
    fn knows(&self, part: Part, observed: &ObservedParts<'_, R>) -> bool {
        let version = observed.answer(part).map(|seen| seen.version);
        self.known.get(&part).is_some_and(|known| known.version.as_ref() == version)
    }

    /// Returns `true` if no part that has answered has changed.
    fn is_unchanged(&self, observed: &ObservedParts<'_, R>) -> bool {
        observed.parts().all(|part| self.knows(part, observed))
    }

    /// Returns `true` if a part counts and is unchanged, except for the name of the preferred next leader (rule 14).
    fn stays(&self, part: Part, observed: &ObservedParts<'_, R>) -> bool {
        self.counts(part) && (self.knows(part, observed) || self.is_shown_by(part, observed))
    }

    fn is_shown_by(&self, part: Part, observed: &ObservedParts<'_, R>) -> bool {
        observed.copy(part).is_some_and(|copy| is_same_write(copy, self.record()))
    }
}

/// M1: combines the versions of all known parts into one, together with which of them count. Otherwise, two polls that find the same
/// versions would share one version of the whole, even if different parts count, and different records are shown. A write on that version
/// could then replace parts that did not count for its record.
fn whole<R: InParts>(parts: &KnownParts<R>) -> R::Version {
    R::whole(parts.iter().map(|(part, known)| (*part, (known.version.as_ref(), known.counts))).collect())
}

impl<R: InParts> KnownPart<R> {
    fn new(seen: Option<&ObservedPart<'_, R>>, counts: bool) -> Self {
        let is_needed = |seen: &&ObservedPart<'_, R>| !counts || seen.record.holder().is_none();
        Self {
            version: seen.map(|seen| seen.version.clone()),
            counts,
            uncounted_or_free: seen.filter(is_needed).map(|seen| Arc::new(seen.record.clone())),
        }
    }

    /// M10: returns `true` if a leader with this token may write over the part: it counts, or it is behind the term. Once a term is won, no
    /// other term with its token or a smaller one can lead, so a part behind it protects no leader.
    fn is_writable(&self, token: u64) -> bool {
        self.counts || self.uncounted_or_free.as_ref().is_none_or(|record| record.token() <= token)
    }
}
