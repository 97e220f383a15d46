//! One lease in n objects, its *parts*, of which a leader needs q: more than half (rules M1 to M7, M9, M10 and M12 of
//! docs/protocol.md).
//!
//! A [`Quorum`] stands between a [`Lease`](crate::lease::Lease) and its parts, in the place of one object. It keeps no clock and
//! decides no term: the lease's rules hold unchanged for the record and version that the quorum shows.
//!
//! ```text
//!   Lease -- Write --> plan -- Plan --> Put, Put, Put --> the parts
//!         <- version -- wrote <-- Plan <-- their answers <--+
//!         <- Versioned -- look <-- ObservedParts <-- their answers <-- reads
//! ```
//!
//! Two notions decide what the lease makes of a poll, and each depends on the other:
//!
//! - *The version of the whole* is that of every known part, and says which parts count. So it changes whenever a poll finds a part
//!   changed. On a new version the lease begins a wait (rules 1 and 2), drops its own unanswered writes, and replaces nothing
//!   older.
//! - *The same write* is the lease's exception: a record with the id, holder, token and lease of the one before is no renewal (rule
//!   14), so the wait runs on, and the holder still holds. A record with those of one of the lease's own unanswered writes is
//!   committed (rule 6).
//!
//! Parts change one after the other, so one write of a leader is several versions of the whole. Hence the record that is shown
//! beside a new version says whether a wait begins: [`Continues`](Verdict::Continues) and [`HandingOver`](Verdict::HandingOver) show the write
//! that was shown before, [`Committed`](Verdict::Committed) shows one that q parts have, and [`Free`](Verdict::Free) and
//! [`Blocked`](Verdict::Blocked) show a record with an id of no write, which is new with each version.
//!
//! Exclusion and growing tokens depend on what one lease depends on, for each part that is not *hostile*, and on this:
//!
//! - Any two candidates have the same parts and q, or parts and q for which any two sufficient sets overlap (M8).
//! - Fewer than 2q - n parts are hostile: their contents are whatever somebody likes (M12). Of three parts of which two
//!   are needed, none may be. A part that was restored from a backup counts as hostile, and so does one whose object
//!   somebody has deleted.
//! - An id is never drawn again, and no answer is handed in for another part or put than its own.
//!
//! Which answers to wait for, the order of the puts, second tries, and whether to roll back what a write has taken, are policy. A
//! put that is never sent counts as a request that was lost. A policy owes the kernel what no type can check:
//!
//! - One [`Quorum`] stands before one lease, and the lease gets the answer to its write before the next poll.
//! - Each put is sent once, and its answer is handed in for its own plan and part. [`Plan::send_again`] comes before [`Plan::answered`].
//! - The answers of the background are handed in with the write that has left their parts there.
//!
//! A *copy* is the record of one part; it is our *own* if it shows a write of this candidate. A *takeover* is the first write of a term. Two
//! candidates may write one token into different parts, but only one gets q of them.

mod background;
mod plan;
mod show;
mod visit;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::record::{InParts, Record, Versioned, is_same_write};

pub use plan::{Failed, Plan, Put, Unplanned};

/// The most by which failed acquisitions may raise the token of one part above those of q others.
const MOST_TRIES: u64 = 1 << 20;

/// The number of a part, in the order in which every candidate takes them (M2).
pub type Part = usize;

/// The answer of a part to a read.
#[derive(Clone, Debug)]
pub struct ObservedPart<'a, R: Record> {
    /// The content.
    pub record: &'a R,
    /// Its version.
    pub version: &'a R::Version,
    /// Its age, if the store's clock tells it (rule 19).
    pub age: Option<Duration>,
}

/// The answers of the parts that have answered a poll; `None` for a part without an object.
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

/// Fewer than q parts have answered, so their answers show nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew;

/// The meaning of a poll: the first case that fits. The order is a part of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// M1: **no part that has answered has changed, and q of them count.** The record and version that were shown before.
    ///
    /// First, because `Free` and `Blocked` know only the parts that have answered: each poll with other answers would begin the
    /// wait for the lease anew.
    Same,
    /// M3: **q parts show one write.** That write, with its token. One of our own writes counts only while the lease waits
    /// for it: the first poll that is not `Same` ends that, and a write whose parts are rolled back gives nothing (M7).
    ///
    /// Before `Continues`, which our own committed write fits, too: the lease would never learn that it is committed.
    Committed,
    /// M7, M10: **q parts are as they were shown, or have changed by nothing but our own writes and a request** (rule 14). The
    /// record that was shown before, with its token. A leader that can do without some parts counts those behind its term, too:
    /// beside its own part and theirs, no later term can have q.
    ///
    /// Before the others, because the copy of one of our own writes has no other holder, and a holder that is asked has
    /// not gone.
    Continues,
    /// M6: **another holder has released some of its parts, but fewer than q, and the rest of q are as they were.** The record that was
    /// shown before, with its token: its holder leads no more, and its last lease runs on.
    ///
    /// After `Continues`, in which nothing was released but by this candidate, or seen before. Before `Free`: q parts may look free while
    /// the window of the last renewal is still open on the holder's slower clock, if an operator has released them. Before `Blocked`,
    /// which would begin the wait anew with each part that is released.
    HandingOver,
    /// M4: **nobody holds any of q parts**, or only this candidate, if it does not lead. A record without a holder, whose token is
    /// the q-th of the tokens of those parts, from below (M5). A part with a token far above those of q others is none of them.
    ///
    /// Before `Blocked`, because beside q free parts any holder has at most n - q, which is less than q.
    Free,
    /// M4: **otherwise, any holder of a part blocks all.** The record of the holder with the largest token, for the longest of the
    /// leases; a holder with this candidate's own name only if there is no other, because the lease of its earlier life must not
    /// hide another holder's; nobody's, if our own copies are all that is held. The token is the q-th of those of all parts, from
    /// below (M5).
    Blocked,
}

/// One candidate's view of one lease in several objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quorum<R: InParts> {
    me: R::Identity,
    names: R::Parts,
    size: usize,
    needed: usize,
    shown: Option<ObservedWhole<R>>,
    /// Our own writes that may be in a part, or may be committed yet, oldest first.
    own: VecDeque<OwnWrite<R>>,
}

/// The object that was shown last, and the knowledge of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ObservedWhole<R: InParts> {
    found: Versioned<R>,
    places: KnownParts<R>,
    /// `true` if every part that counts shows the record, which is one write: its holder recognizes a request in any of
    /// them as one on its own record (M9).
    is_one_write: bool,
}

/// The parts of which the version is known.
type KnownParts<R> = BTreeMap<Part, KnownPart<R>>;

/// One part as it was last seen or written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct KnownPart<R: InParts> {
    /// `None` if there is no object.
    version: Option<R::Version>,
    /// `true` if the part belongs to what is shown, so that a takeover may replace it.
    counts: bool,
    /// The record of a part that does not count, or that nobody holds.
    aside: Option<Arc<R>>,
}

/// One of our own writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OwnWrite<R: InParts> {
    record: Arc<R>,
    /// `true` while the lease waits for the outcome of the write.
    is_awaited: bool,
}

impl<R: InParts> Quorum<R> {
    /// Creates the view of the candidate `me` before its first poll. A leader needs `needed` of `size` parts: at least the smallest
    /// majority, whatever is given.
    pub fn new(me: R::Identity, names: R::Parts, size: usize, needed: usize) -> Self {
        Self { me, names, size, needed: needed.max(size / 2 + 1), shown: None, own: VecDeque::new() }
    }

    // ---- What a policy sees ----

    /// q.
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// Returns `true` if the lease was last shown as this candidate's own, whether it still leads or not.
    pub fn is_shown_as_holder(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.record().holder().is_some() && self.is_own(shown.record()))
    }

    /// Returns `true` if what was shown last is one write, or held by nobody. Otherwise the parts that have not answered may be those
    /// that have changed.
    pub fn is_one_write_or_free(&self) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.is_one_write || shown.record().holder().is_none())
    }

    /// M10: the number of parts that a leader leaves alone until another term begins, because their tokens are above its own.
    pub fn left_out(&self) -> usize {
        let Some(shown) = self.shown.as_ref().filter(|_| self.is_shown_as_holder()) else { return 0 };
        shown.places.values().filter(|place| !place.is_behind(shown.record().token())).count()
    }

    /// Returns `true` if a part shows one of our own writes.
    pub fn is_own(&self, copy: &R) -> bool {
        self.own_write(copy).is_some()
    }

    /// Returns `true` if the answer of a part is another than what was known of it.
    pub fn has_changed(&self, observed: &ObservedParts<'_, R>, part: Part) -> bool {
        self.shown.as_ref().is_some_and(|shown| !shown.knows(part, observed))
    }

    /// M4: the order of two parts. The larger one says who leads: the later term has the higher token.
    pub fn precedence(&self, copy: &R) -> (bool, bool, u64) {
        let is_held = copy.holder().is_some();
        (is_held && copy.holder() != Some(&self.me), is_held, copy.token())
    }

    // ---- Polls ----

    /// Takes the answers to a poll. Returns the record that they show together with the version of the whole, and the age of that
    /// version.
    ///
    /// # Errors
    ///
    /// Too few parts have answered.
    pub fn look(
        &mut self,
        observed: &ObservedParts<'_, R>,
    ) -> Result<(Option<Versioned<R>>, Option<Duration>), TooFew> {
        // The others may show another write, which q parts have.
        if observed.0.len() < self.needed {
            return Err(TooFew);
        }
        // Rule 19: the youngest part dates the whole. If one has no age, neither has the whole.
        let age = observed.0.values().flatten().map(|seen| seen.age).min().flatten();
        let (verdict, mut counted) = self.verdict(observed);
        if let (Verdict::Same, Some(shown)) = (verdict, &self.shown) {
            return Ok((Some(shown.found.clone()), age));
        }
        // M5: the next term's token is above that of parts that are free or blocked: of all, if q have no object. Otherwise the
        // term goes on, and no part is left out.
        let highest = || observed.copies(&counted).map(Record::token).max();
        let token = match verdict {
            Verdict::Free | Verdict::Blocked => self.quorum_token(observed, counted.iter().copied()).or_else(highest),
            _ => observed.all().map(Record::token).max(),
        };
        // In this order: no mark of a part above the token keeps another part from counting, and the version says which parts count.
        counted.retain(|part| observed.copy(*part).is_none_or(|copy| Some(copy.token()) <= token));
        let marks = self.marks(observed, &mut counted);
        let places = self.places(observed, verdict, &counted);
        let version = whole(&places);
        let is_one_write = self.shows_one_write(observed, verdict, &counted);
        let record =
            token.and_then(|token| self.record(observed, (verdict, is_one_write), (&counted, token), marks, &version));
        let committed =
            observed.copies(&counted).next().filter(|_| verdict == Verdict::Committed && counted.len() == self.size);
        if let Some(committed) = committed.filter(|committed| self.is_own(committed)) {
            self.forget_all_but(committed.write_id());
        }
        // The lease drops its own writes when it sees another version.
        self.own.iter_mut().for_each(|own| own.is_awaited = false);
        let found = record.map(|record| Versioned { record: Arc::new(record), version });
        self.shown = found.clone().map(|found| ObservedWhole { found, places, is_one_write });
        Ok((found, age))
    }

    /// M9: returns `true` if every part that counts shows one write. A poll may go on from parts of different writes,
    /// or beside one of the lease's own writes: a request would replace a copy of one write with a copy of another, and
    /// nobody has waited for that part's lease.
    fn shows_one_write(&self, observed: &ObservedParts<'_, R>, verdict: Verdict, counted: &BTreeSet<Part>) -> bool {
        let before = self.shown.as_ref().filter(|shown| shown.is_one_write);
        let is_it = |part: &Part| before.is_some_and(|shown| shown.is_shown_by(*part, observed));
        verdict == Verdict::Committed || verdict == Verdict::Continues && counted.iter().all(is_it)
    }

    /// The meaning of a poll, and the parts that show it.
    pub fn verdict(&self, observed: &ObservedParts<'_, R>) -> (Verdict, BTreeSet<Part>) {
        // A record from fewer answers is dropped if these answers show that its token is far above those of q parts.
        let shown = self.shown.as_ref().filter(|shown| !self.is_far_above(observed, shown.record().token()));
        // M6: a holder that has released q parts blocks nobody, even if another part has refused the release or
        // was rolled back.
        let unreleased = shown.filter(|shown| !self.is_released(observed, shown.record()));
        let of = |case: Verdict, those: Option<BTreeSet<Part>>| Some((case, those?));
        of(Verdict::Same, shown.and_then(|shown| self.unchanged(observed, shown)))
            .or_else(|| of(Verdict::Committed, self.committed_in(observed)))
            .or_else(|| of(Verdict::Continues, self.going_on(observed, unreleased?)))
            .or_else(|| of(Verdict::HandingOver, self.left(observed, unreleased?)))
            .or_else(|| of(Verdict::Free, self.free(observed)))
            .unwrap_or_else(|| (Verdict::Blocked, observed.parts().collect()))
    }

    /// The parts of which something is true, if there are q.
    fn enough(&self, observed: &ObservedParts<'_, R>, is_one: impl Fn(Part) -> bool) -> Option<BTreeSet<Part>> {
        let those: BTreeSet<Part> = observed.parts().filter(|part| is_one(*part)).collect();
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
            // M12: an id does not prove the content. Somebody may have written it beside another one.
            let is_it = |copy: &R| is_same_write(copy, written) && copy.describes_as(written);
            self.enough(observed, |part| observed.copy(part).is_some_and(is_it))
        })
    }

    /// See [`Verdict::Continues`].
    fn going_on(&self, observed: &ObservedParts<'_, R>, shown: &ObservedWhole<R>) -> Option<BTreeSet<Part>> {
        let goes_on =
            |part: Part| shown.stays(part, observed) || observed.copy(part).is_some_and(|copy| self.is_own(copy));
        // M10: no later term can have q beside a leader's part and those that are behind it, and neither can another term with
        // the same token. A release keeps the token: such a part is not behind, it is lost.
        let leads = self.may_lead_without_all();
        let token = shown.record().token();
        let is_behind = |copy: &R| copy.token() < token || copy.token() == token && copy.holder().is_some();
        let mut those =
            self.enough(observed, |part| goes_on(part) || leads && observed.copy(part).is_none_or(is_behind))?;
        // Whoever leads no more may have to begin another term here: it replaces only its own parts, and those that nobody holds.
        those.retain(|part| goes_on(*part) || observed.is_free(*part));
        Some(those)
    }

    /// See [`Verdict::HandingOver`].
    fn left(&self, observed: &ObservedParts<'_, R>, shown: &ObservedWhole<R>) -> Option<BTreeSet<Part>> {
        let record = shown.record();
        let holder = record.holder().filter(|holder| **holder != self.me)?;
        let is_theirs = |copy: &R| copy.holder() == Some(holder);
        let is_held = |part: Part| shown.stays(part, observed) && observed.copy(part).is_some_and(is_theirs);
        // A release keeps the token. A part that somebody else has rolled back has a higher one.
        let is_left = |copy: &R| copy.holder().is_none() && copy.token() == record.token();
        let those = self.enough(observed, |part| is_held(part) || observed.copy(part).is_some_and(is_left))?;
        observed.parts().any(is_held).then_some(those)
    }

    /// M6: returns `true` if q parts have no holder, and the token of the shown holder's term or a later one. A part with an older token
    /// says nothing of this term, and neither does one without an object.
    fn is_released(&self, observed: &ObservedParts<'_, R>, record: &R) -> bool {
        let is_released = |copy: &&R| copy.holder().is_none() && copy.token() >= record.token();
        let is_others = record.holder().is_some_and(|holder| *holder != self.me);
        is_others && observed.all().filter(is_released).count() >= self.needed
    }

    /// See [`Verdict::Free`]. A leader that reads one of its parts has not lost it, so its part is not free.
    fn free(&self, observed: &ObservedParts<'_, R>) -> Option<BTreeSet<Part>> {
        let leads = self.may_lead_without_all();
        self.enough(observed, |part| {
            let is_nobodys =
                !leads && observed.copy(part).is_some_and(|copy| self.is_own(copy)) || observed.is_free(part);
            is_nobodys && observed.copy(part).is_none_or(|copy| !self.is_far_above(observed, copy.token()))
        })
    }

    /// M5: returns `true` if a token is far above those of q parts. A writer of one may have used up its tokens: then
    /// that part does not count as free, and the holder of another is waited for.
    fn is_far_above(&self, observed: &ObservedParts<'_, R>, token: u64) -> bool {
        // Of parts without objects, the first try has the first token.
        token > self.quorum_token(observed, observed.parts()).unwrap_or(0).saturating_add(MOST_TRIES)
    }

    /// Returns `true` if this candidate may lead without some parts: the lease was shown as its own, and it has not tried to begin a
    /// later term since. Whoever has tried waits for the holders of all parts, as any other does.
    fn may_lead_without_all(&self) -> bool {
        // If all are needed, nobody else leads beside one part of this candidate's, and there is nothing to count.
        let token = self.shown.as_ref().map(|shown| shown.record().token());
        let has_tried = || self.own.iter().any(|own| Some(own.record.token()) > token);
        self.needed < self.size && self.is_shown_as_holder() && !has_tried()
    }

    fn own_write(&self, copy: &R) -> Option<&OwnWrite<R>> {
        self.own.iter().find(|own| is_same_write(copy, &*own.record))
    }

    /// M1: what is known of the parts after a poll. A part that has not answered is as it was, if its write still counts.
    fn places(&self, observed: &ObservedParts<'_, R>, verdict: Verdict, counted: &BTreeSet<Part>) -> KnownParts<R> {
        let is_committed =
            |shown: &ObservedWhole<R>| observed.copies(counted).any(|copy| is_same_write(copy, shown.record()));
        let known = |shown: &ObservedWhole<R>| match verdict {
            Verdict::Same | Verdict::Continues | Verdict::HandingOver => shown.places.clone(),
            // Not if other writes were shown beside it: the holder may have released that part since, with the mark of
            // a job.
            Verdict::Committed if shown.is_one_write && is_committed(shown) => shown.places.clone(),
            // No part has changed: some are only silent. When they answer as before, that must not begin another wait.
            Verdict::Blocked if shown.is_one_write && shown.is_unchanged(observed) => {
                let uncounted = |place: &KnownPart<R>| KnownPart { counts: false, ..place.clone() };
                shown.places.iter().map(|(part, place)| (*part, uncounted(place))).collect()
            }
            // Beside another record, what was known of a silent part belongs to what is over.
            Verdict::Committed | Verdict::Free | Verdict::Blocked => KnownParts::new(),
        };
        let seen = observed.parts().map(|part| (part, KnownPart::new(observed.answer(part), counted.contains(&part))));
        self.shown.iter().flat_map(known).chain(seen).collect()
    }

    /// Forgets the writes before one that is in every part: none can be committed any more, because each names a version that
    /// is gone.
    fn forget_all_but(&mut self, write_id: Option<&R::WriteId>) {
        self.own.retain(|own| own.record.write_id() == write_id);
    }
}

impl<R: InParts> ObservedWhole<R> {
    fn record(&self) -> &R {
        &self.found.record
    }

    fn counts(&self, part: Part) -> bool {
        self.places.get(&part).is_some_and(|place| place.counts)
    }

    /// Returns `true` if the answer of a part shows the version that is known of it.
    fn knows(&self, part: Part, observed: &ObservedParts<'_, R>) -> bool {
        let version = observed.answer(part).map(|seen| seen.version);
        self.places.get(&part).is_some_and(|place| place.version.as_ref() == version)
    }

    /// Returns `true` if no part that has answered has changed.
    fn is_unchanged(&self, observed: &ObservedParts<'_, R>) -> bool {
        observed.parts().all(|part| self.knows(part, observed))
    }

    /// Returns `true` if a part that counts is as it was, but for the name of the next leader (rule 14).
    fn stays(&self, part: Part, observed: &ObservedParts<'_, R>) -> bool {
        self.counts(part) && (self.knows(part, observed) || self.is_shown_by(part, observed))
    }

    fn is_shown_by(&self, part: Part, observed: &ObservedParts<'_, R>) -> bool {
        observed.copy(part).is_some_and(|copy| is_same_write(copy, self.record()))
    }
}

/// M1: all versions as one. Two polls with the same versions in which other parts count show other records, and a
/// record must not be written over parts that it does not come from. So the version says which parts count.
fn whole<R: InParts>(places: &KnownParts<R>) -> R::Version {
    R::whole(places.iter().map(|(part, place)| (*part, (place.version.as_ref(), place.counts))).collect())
}

impl<R: InParts> KnownPart<R> {
    fn new(seen: Option<&ObservedPart<'_, R>>, counts: bool) -> Self {
        let is_aside = |seen: &&ObservedPart<'_, R>| !counts || seen.record.holder().is_none();
        Self {
            version: seen.map(|seen| seen.version.clone()),
            counts,
            aside: seen.filter(is_aside).map(|seen| Arc::new(seen.record.clone())),
        }
    }

    /// M10: returns `true` if a leader with this token may write over the part. No earlier term leads any more, and none with the same
    /// token does.
    fn is_behind(&self, token: u64) -> bool {
        self.counts || self.aside.as_ref().is_none_or(|record| record.token() <= token)
    }
}
