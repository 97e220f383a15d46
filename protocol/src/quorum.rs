//! A quorum: one lease in n objects, its *parts*, of which a leader needs q, more than half (rules M1 to M7, M9, M10 and M12 of
//! docs/protocol.md).
//!
//! A [`Quorum`] shows its parts to a [`Lease`](crate::lease::Lease) as if they were one object, the *whole*. After each
//! poll, it combines them into one record and version, to which the lease applies its rules. The quorum ends no term.
//!
//! ```text
//!   a write:      Write -> plan() -> Plan -> Put, Put, Put -> the parts
//!   its answers:  the parts -> Plan::answered() -> wrote() -> the version of the whole, for the lease
//!   a poll:       the parts -> ObservedParts -> polled() -> Versioned, for the lease
//! ```
//!
//! - A *copy* is the record in one part. It is our *own* if this very process wrote it, not an earlier one with our identity.
//! - The quorum derives the record of the whole from some of the parts. These parts *count*. The first write of a term replaces only parts
//!   that count. Here, it is called a *takeover* even if the lease was free.
//! - A part is *behind* a term if its token is smaller or equal: two candidates may write the same token into different parts, but only one
//!   of them gets q parts. The leader of the term may write over such a part.
//!
//! After a poll, the lease compares the version and the write with those shown before. Two records show the *same write* if their id,
//! holder, token and lease duration are equal.
//!
//! - The same version: nothing has changed.
//! - A new version of the same write: nothing was renewed, so the wait for the holder continues (rule 14).
//! - A new version with one of the lease's own unanswered writes: that write was committed (rule 6).
//! - A new version with any other write: a wait begins, unless the record has no holder (rules 1 and 2).
//!
//! After each new version, the lease forgets its own unanswered writes, and makes its next write on the new version.
//!
//! The version of the whole combines the known versions of the parts, and says which parts count. So it changes whenever a poll finds a
//! changed part. Parts change one after the other, so one renewal causes several versions, but it must start only one wait. Therefore the
//! [`Verdict`] on the poll chooses which record comes with a new version.
//!
//! Each part must fulfil the assumptions of a single lease, unless the part is *hostile*: anything may be written into it. Exclusion and
//! growing tokens also depend on these assumptions:
//!
//! - Any q parts of one candidate overlap with any q parts of another, for example because both have the same parts and the same q (M8).
//! - Fewer than 2q - n parts are hostile (M12). If two of three parts are needed, none may be hostile. A part is also hostile if it was
//!   restored from a backup, or its object was deleted.
//! - No write id is used twice.
//!
//! A policy chooses which answers to wait for, the order of the puts, whether to try again, and whether to roll back a write that took too
//! few parts. A put that is never sent counts as a lost request. The policy also has duties that the types cannot enforce:
//!
//! - Use one [`Quorum`] for one lease, and give the lease the answer to its write before the next poll.
//! - Send each put once, and hand in its answer for its own plan and part. To repeat a failed put, call [`Plan::send_again`] before
//!   [`Plan::answered`] takes the failure, which may end the plan.
//! - An answer is *late* if it comes after its write was committed in q other parts. It answers a put that was open or unsent at that
//!   moment, or a read of [`Quorum::unread`]. Hand it in with [`Quorum::observe_part`], together with the record of the write.

mod background;
mod plan;
mod show;
mod visit;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::record::{InParts, Record, Versioned, is_same_write};

pub use plan::{Failed, Plan, Put, Unplanned};

/// A part is not free if its token exceeds those of q others by more than this (M5). Failed acquisitions never raise a token by so much.
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

    fn copy(&self, part: Part) -> Option<&'a R> {
        self.answer(part).map(|seen| seen.record)
    }

    fn copies(&self, parts: &BTreeSet<Part>) -> impl DoubleEndedIterator<Item = &'a R> {
        parts.iter().filter_map(|part| self.copy(*part))
    }

    fn all_copies(&self) -> impl Iterator<Item = &'a R> {
        self.0.values().flatten().map(|seen| seen.record)
    }

    /// Returns `true` if nobody holds this part, which must have answered.
    fn is_free(&self, part: Part) -> bool {
        self.copy(part).is_none_or(|copy| copy.holder().is_none())
    }
}

/// Fewer than q parts have answered. Nothing is shown: the others may have another holder, or complete q parts with one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew;

/// What a poll means: the first of these cases that fits. [`Quorum::verdict`] shows by examples why they have this order.
///
/// A part counts if it fulfils the condition in bold, unless the text after it says otherwise. `Free` and `Blocked` show a record that is
/// in no part. Its id belongs to no write, and differs for each version, so the lease takes it for a new write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// M1: **no part that has answered has changed, and q of them counted before.** These count again. Shows the same record and version.
    Same,
    /// M3: **q parts show one write.** Shows that write. A wait begins if the lease did not know it.
    ///
    /// A write of our own fits only until the first poll that is not `Same`: then the lease stops waiting for its
    /// outcome. A write that is being rolled back never fits (M7).
    Committed,
    /// M7, M10: **q parts show our own writes, or counted before and are unchanged except for requests to lead next** (rule 14). Shows the
    /// same write as before, so the wait continues.
    ///
    /// If q < n and we may be leading, parts behind our term fit as well, except another's release with our token that is no rollback. Of
    /// these parts, only the free ones count. They do not endanger our term: a later term writes a higher token into each of its parts,
    /// and the token of a part never falls. So a later term has at most the n - q parts that do not fit: fewer than q.
    Continues,
    /// M6: **q parts are released by another holder, or still held by it as before.** Fewer than q are released. Shows the same write as
    /// before, so the wait continues: the holder's lease counts from its last renewal.
    HandingOver,
    /// M4: **q parts have no holder.** Shows a record without a holder, or none if none of these parts has an object. No wait begins.
    ///
    /// Parts with our own copies fit, too, unless q < n and we may be leading. A part with a token far above
    /// those of q others does not fit. The q-th smallest token of the parts that fit is shown, and parts with a larger
    /// one do not count (M5). But if q of these parts have no object, the highest token is shown, and all count.
    Free,
    /// M4: **anything else: whoever holds a part blocks the lock.** All parts that have answered count, except those whose tokens are above
    /// the q-th smallest (M5). Shows that token, the holder with the highest token, and the longest of the leases.
    ///
    /// A wait begins if another candidate holds a part; our own copies are ignored. An earlier process with our identity is shown only if
    /// there is no other holder, because the lease may take over from that process without a wait (rule 2).
    Blocked,
}

/// What one candidate knows of one lease in several objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quorum<R: InParts> {
    me: R::Identity,
    /// The names of all parts and the number that a leader needs: every copy has them (M8).
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
    /// `true` if every part that counts shows this same write. A request to lead next needs this (M9), because it
    /// keeps the write's id: by this id, the holder takes the copies of the request for its own.
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
    /// The copy, if needed later. In a part that does not count, a leader compares the copy's token with its own (M10).
    /// In a part without a holder, the copy may be our own release. If that release is tried again, it skips the part (M6).
    kept_copy: Option<Arc<R>>,
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

    /// Returns `true` if the record that was shown last is our own and has a holder, whether or not we still lead.
    pub fn is_shown_as_holder(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.record().holder().is_some() && self.is_own(shown.record()))
    }

    /// Returns `true` if the record that was shown last is one write, or has no holder. Otherwise, a poll should wait
    /// for more answers even after `Same`: a part without an answer may be free, and with it the lock.
    pub fn is_one_write_or_free(&self) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.is_one_write || shown.record().holder().is_none())
    }

    /// M10: the number of parts that a leader does not write in this term, because their tokens are above its own.
    pub fn left_out(&self) -> usize {
        let Some(shown) = self.shown.as_ref().filter(|_| self.is_shown_as_holder()) else { return 0 };
        shown.known.values().filter(|known| !known.is_writable(shown.record().token())).count()
    }

    /// Returns `true` if a copy is one of our own writes.
    pub fn is_own(&self, copy: &R) -> bool {
        self.own_write(copy).is_some()
    }

    /// Returns `true` if the answer of a part differs from what was known of the part.
    pub fn has_changed(&self, observed: &ObservedParts<'_, R>, part: Part) -> bool {
        self.shown.as_ref().is_some_and(|shown| !shown.knows(part, observed))
    }

    /// M4: the key by which copies are compared: `Free` and `Blocked` show the one with the largest. Copies without a
    /// holder have the smallest keys, then come those of our identity, then those of others. Among equals, the token decides.
    pub fn precedence(&self, copy: &R) -> (bool, bool, u64) {
        let is_held = copy.holder().is_some();
        (is_held && copy.holder() != Some(&self.me), is_held, copy.token())
    }

    // ---- Polls ----

    /// Takes the answers to a poll. Returns the record and the version of the whole, and its age.
    ///
    /// # Errors
    ///
    /// Too few parts have answered.
    pub fn polled(
        &mut self,
        observed: &ObservedParts<'_, R>,
    ) -> Result<(Option<Versioned<R>>, Option<Duration>), TooFew> {
        if observed.0.len() < self.needed {
            return Err(TooFew);
        }
        // Rule 19: the whole is as old as its youngest part. If one part has no age, the whole has none.
        let age = observed.0.values().flatten().map(|seen| seen.age).min().flatten();
        let (verdict, mut counted) = self.verdict(observed);
        if let (Verdict::Same, Some(shown)) = (verdict, &self.shown) {
            return Ok((Some(shown.found.clone()), age));
        }
        // Parts above this token do not count. M5: after `Free` and `Blocked`, the next term may get the token just
        // above it. In the other cases, no part is left out for its token, so this is the highest.
        let highest = || observed.copies(&counted).map(Record::token).max();
        let token = match verdict {
            Verdict::Free | Verdict::Blocked => self.quorum_token(observed, counted.iter().copied()).or_else(highest),
            _ => observed.all_copies().map(Record::token).max(),
        };
        // The order matters. First, the parts above the token no longer count. Then M12: parts with a mark that q parts
        // lack no longer count either, but only if q parts are left. Last, the version says which parts count.
        counted.retain(|part| observed.copy(*part).is_none_or(|copy| Some(copy.token()) <= token));
        let marks = self.exclude_stray_marks(observed, &mut counted);
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
        // Every case except `Same` may show a new version, after which the lease no longer waits for the outcomes of its writes.
        self.own.iter_mut().for_each(|own| own.is_awaited = false);
        let found = record.map(|record| Versioned { record: Arc::new(record), version });
        self.shown = found.clone().map(|found| ObservedWhole { found, known, is_one_write });
        Ok((found, age))
    }

    /// M9: returns `true` if all parts that count show the same write. A request to lead next is written into all of them. If one showed
    /// another write, the request would replace that write, although nobody has waited for its lease to expire.
    fn shows_one_write(&self, observed: &ObservedParts<'_, R>, verdict: Verdict, counted: &BTreeSet<Part>) -> bool {
        let before = self.shown.as_ref().filter(|shown| shown.is_one_write);
        // The parts that count in `Continues` may show different writes, some of them our own.
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
        // Several cases may fit one poll, and safety depends on their order. In these examples, a leader needs two of the parts A, B and C,
        // and a holder's write w2 follows its w1.
        let case = |verdict: Verdict, parts: Option<BTreeSet<Part>>| Some((verdict, parts?));
        // Before all others: A and B show our w1, and our unanswered w2 is in flight. `Continues` fits, too. But after any case other than
        // `Same`, w2 no longer fits `Committed`, so the lease would never learn that w2 is committed later.
        case(Verdict::Same, shown.and_then(|shown| self.unchanged(observed, shown)))
            // Before `Continues`: our w2 is in A and B, but both answers were lost. `Continues` fits, too, because both copies are our own.
            // It would show w1, so the lease would never learn that w2 is committed.
            .or_else(|| case(Verdict::Committed, self.committed_in(observed)))
            // Before `HandingOver`: another holder has crashed with w2 in A and w1 in B, and our own takeover has reached only C. Both fit,
            // but only `Continues` also counts C. After `HandingOver`, our next takeover would leave C out.
            // Before `Blocked`: A has our failed takeover, and B still has the write of its holder. `Blocked` would restart the wait for
            // that holder. Or A has our w2, B our w1, and C is silent. `Blocked` would ignore both copies and end our term.
            .or_else(|| case(Verdict::Continues, self.going_on(observed, unreleased?)))
            // Before `Free`: a holder has A and B, and C has no object. An operator releases B. Now B and C are free, but the holder's
            // window may still be open.
            // Before `Blocked`: a holder releases one part after the other. `Blocked` would restart the wait after each.
            .or_else(|| case(Verdict::HandingOver, self.handing_over(observed, unreleased?)))
            // Before `Blocked`, which fits every poll: a candidate has crashed while it held A, and B and C are free. As q parts are free,
            // it has at most n - q, which are fewer than q. So it cannot lead, and nobody has to wait for it.
            .or_else(|| case(Verdict::Free, self.free(observed)))
            .unwrap_or_else(|| (Verdict::Blocked, observed.parts().collect()))
    }

    /// Returns the parts that satisfy a condition, if there are at least q.
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
        observed.all_copies().filter(may_count).find_map(|written| {
            // M12: an id does not prove the content, because a hostile writer may copy it into a record with another address.
            let is_it = |copy: &R| is_same_write(copy, written) && copy.has_same_holder_details(written);
            self.enough(observed, |part| observed.copy(part).is_some_and(is_it))
        })
    }

    /// See [`Verdict::Continues`].
    fn going_on(&self, observed: &ObservedParts<'_, R>, shown: &ObservedWhole<R>) -> Option<BTreeSet<Part>> {
        let goes_on =
            |part: Part| shown.stays(part, observed) || observed.copy(part).is_some_and(|copy| self.is_own(copy));
        // M10: a part behind the term is harmless: it belongs to no other term that can lead. The exception is a release with the term's
        // token, by which an operator may have ended this term. A rival's rollback looks the same except for its id, but is harmless.
        let may_lead = self.may_lead_with_some();
        let token = shown.record().token();
        let is_rolled_back = |copy: &R| copy.write_id().is_some_and(R::is_of_rollback);
        let is_harmless = |copy: &R| {
            copy.token() < token || copy.token() == token && (copy.holder().is_some() || is_rolled_back(copy))
        };
        let mut those =
            self.enough(observed, |part| goes_on(part) || may_lead && observed.copy(part).is_none_or(is_harmless))?;
        // If the term is over, a takeover may follow, which replaces the parts that count. Nobody has waited for the holders of parts
        // behind the term, so of these, only the free ones count.
        those.retain(|part| goes_on(*part) || observed.is_free(*part));
        Some(those)
    }

    /// See [`Verdict::HandingOver`]. Called only if [`is_released`](Self::is_released) is false, so the check at the end is always true.
    fn handing_over(&self, observed: &ObservedParts<'_, R>, shown: &ObservedWhole<R>) -> Option<BTreeSet<Part>> {
        let record = shown.record();
        let holder = record.holder().filter(|holder| **holder != self.me)?;
        let is_theirs = |copy: &R| copy.holder() == Some(holder);
        let is_held = |part: Part| shown.stays(part, observed) && observed.copy(part).is_some_and(is_theirs);
        // A release keeps the token. A rival's rollback with this token is safe, too: its part had no write of the holder's term, because
        // the rival's takeover had a higher token than the copy that it replaced.
        let is_released = |copy: &R| copy.holder().is_none() && copy.token() == record.token();
        let those = self.enough(observed, |part| is_held(part) || observed.copy(part).is_some_and(is_released))?;
        observed.parts().any(is_held).then_some(those)
    }

    /// M6: returns `true` if another candidate holds the shown record, and q parts have no holder and at least that record's token. A part
    /// with a smaller token or without an object says nothing about the record's term.
    fn is_released(&self, observed: &ObservedParts<'_, R>, record: &R) -> bool {
        let shows_release = |copy: &&R| copy.holder().is_none() && copy.token() >= record.token();
        let is_others = record.holder().is_some_and(|holder| *holder != self.me);
        is_others && observed.all_copies().filter(shows_release).count() >= self.needed
    }

    /// See [`Verdict::Free`]. Our own copies are free only if we cannot be leading with them.
    fn free(&self, observed: &ObservedParts<'_, R>) -> Option<BTreeSet<Part>> {
        let may_lead = self.may_lead_with_some();
        self.enough(observed, |part| {
            let is_free =
                !may_lead && observed.copy(part).is_some_and(|copy| self.is_own(copy)) || observed.is_free(part);
            is_free && observed.copy(part).is_none_or(|copy| !self.is_far_above(observed, copy.token()))
        })
    }

    /// M5: returns `true` if a token is far above those of q parts. Elections never raise the token of one part that far, but somebody who
    /// can write that part may. Such a part does not count as free, so candidates still wait for the holders of the others.
    fn is_far_above(&self, observed: &ObservedParts<'_, R>, token: u64) -> bool {
        // If q parts have no object, there is no q-th smallest token. Then 0, the token before the first, stands for it.
        token > self.quorum_token(observed, observed.parts()).unwrap_or(0).saturating_add(MAX_TOKEN_GAP)
    }

    /// Returns `true` if q < n and this candidate may be leading: the lease was shown as its own, and it has not tried to begin a later
    /// term since. Once it has tried, it waits for the holders of all parts, like any other candidate.
    fn may_lead_with_some(&self) -> bool {
        let token = self.shown.as_ref().map(|shown| shown.record().token());
        let has_tried = || self.own.iter().any(|own| Some(own.record.token()) > token);
        self.needed < self.size && self.is_shown_as_holder() && !has_tried()
    }

    fn own_write(&self, copy: &R) -> Option<&OwnWrite<R>> {
        self.own.iter().find(|own| is_same_write(copy, &*own.record))
    }

    /// M1: what is known of the parts after a poll. The cases say what stays known of a part that has not answered.
    fn known_parts(
        &self,
        observed: &ObservedParts<'_, R>,
        verdict: Verdict,
        counted: &BTreeSet<Part>,
    ) -> KnownParts<R> {
        let is_shown_again =
            |shown: &ObservedWhole<R>| observed.copies(counted).any(|copy| is_same_write(copy, shown.record()));
        let still_known = |shown: &ObservedWhole<R>| match verdict {
            Verdict::Same | Verdict::Continues | Verdict::HandingOver => shown.known.clone(),
            // Only if every part that counted before showed this write. Otherwise, a silent part may have a release
            // with a job's mark, which the next write could replace and lose.
            Verdict::Committed if shown.is_one_write && is_shown_again(shown) => shown.known.clone(),
            // No part that has answered has changed. If the silent ones return unchanged, the wait must not restart.
            Verdict::Blocked if shown.is_one_write && shown.is_unchanged(observed) => {
                let uncounted = |known: &KnownPart<R>| KnownPart { counts: false, ..known.clone() };
                shown.known.iter().map(|(part, known)| (*part, uncounted(known))).collect()
            }
            // Another record is shown now, so what was known of a silent part is out of date.
            Verdict::Committed | Verdict::Free | Verdict::Blocked => KnownParts::new(),
        };
        let seen = observed.parts().map(|part| (part, KnownPart::new(observed.answer(part), counted.contains(&part))));
        self.shown.iter().flat_map(still_known).chain(seen).collect()
    }

    /// Forgets our own writes except this one, which is in every part. The others cannot be committed: each names a version that is gone.
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

    /// Returns `true` if a part shows the version that was known of it.
    fn knows(&self, part: Part, observed: &ObservedParts<'_, R>) -> bool {
        let version = observed.answer(part).map(|seen| seen.version);
        self.known.get(&part).is_some_and(|known| known.version.as_ref() == version)
    }

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

/// M1: combines the versions of all known parts into one, which also says which parts count. If it did not, a write
/// could replace parts that did not count when the lease saw the record.
fn whole<R: InParts>(parts: &KnownParts<R>) -> R::Version {
    R::whole(parts.iter().map(|(part, known)| (*part, (known.version.as_ref(), known.counts))).collect())
}

impl<R: InParts> KnownPart<R> {
    fn new(seen: Option<&ObservedPart<'_, R>>, counts: bool) -> Self {
        let is_needed = |seen: &&ObservedPart<'_, R>| !counts || seen.record.holder().is_none();
        Self {
            version: seen.map(|seen| seen.version.clone()),
            counts,
            kept_copy: seen.filter(is_needed).map(|seen| Arc::new(seen.record.clone())),
        }
    }

    /// M10: returns `true` if a leader with this token may write over the part: it counts, or it is behind the term. Once a term is won, no
    /// other term with its token or a smaller one can lead, so a part behind it protects no leader.
    fn is_writable(&self, token: u64) -> bool {
        self.counts || self.kept_copy.as_ref().is_none_or(|record| record.token() <= token)
    }
}
