//! One lease in n objects, its *parts*, of which a leader needs q: more than half (rules M1 to M7, M9, M10 and M12 of
//! docs/protocol.md).
//!
//! A [`Quorum`] stands between a [`Lease`](crate::lease::Lease) and its parts, in the place of one object. It keeps no clock and
//! decides no term: the lease's rules hold unchanged for the record and version that the quorum shows.
//!
//! ```text
//!   Lease -- Write --> plan -- Plan --> Put, Put, Put --> the parts
//!         <- version -- wrote <-- Plan <-- their answers <--+
//!         <- Versioned -- look <-- Looks <-- their answers <-- reads
//! ```
//!
//! Two notions decide what the lease makes of a look, and each depends on the other:
//!
//! - *The version of the whole* is that of every known part, and says which parts count. So it changes whenever a part does. On a
//!   new version the lease begins a wait (rules 1 and 2), drops its own unanswered writes, and replaces nothing older.
//! - *The same write* is the lease's exception: a record with the id, holder, token and lease of the one before is no renewal (rule
//!   14), so the wait runs on, and the holder still holds. A record with those of an own unanswered write has landed (rule 6).
//!
//! Parts change one after the other, so one write of a leader is several versions of the whole. Hence the record that is shown
//! beside a new version says whether a wait begins: [`GoesOn`](Verdict::GoesOn) and [`Leaves`](Verdict::Leaves) show the write
//! that was shown before, [`Landed`](Verdict::Landed) shows one that q parts have, and [`Free`](Verdict::Free) and
//! [`Barred`](Verdict::Barred) show a record with an id of no write, which is new with each version.
//!
//! Exclusion and growing tokens depend on what one lease depends on, for each part that is not *hostile*, and on this:
//!
//! - Any two candidates have the same parts and q, or parts and q for which any two sufficient sets overlap (M8).
//! - Fewer than 2q - n parts are hostile: their contents are whatever somebody likes (M12). Of three parts of which two are needed,
//!   none may be. A part that was restored from a copy counts as hostile.
//! - An id is never drawn again, and no answer is handed in for another part or put than its own.
//!
//! Which answers to wait for, the order of the puts, second tries, and whether to give back what a write has taken, are policy. A put
//! that is never sent counts as a request that was lost.
//!
//! A *half* is the record of one part. Two candidates may write one token into different parts, but only one gets q of them.

mod plan;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::lease::Visitor;
use crate::record::{Claims, Content, InParts, RELEASED_LEASE, Record, Versioned, counts, is_same_write};

pub use plan::{Failed, Plan, Put, Unplanned};

/// The number of a part, in the order in which every candidate takes them (M2).
pub type Part = usize;

/// The answer of a part to a read.
#[derive(Debug)]
pub struct Seen<'a, R: Record> {
    /// The content.
    pub record: &'a R,
    /// Its version.
    pub version: &'a R::Version,
    /// Its age, if the store's clock tells it (rule 19).
    pub age: Option<Duration>,
}

impl<R: Record> Clone for Seen<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Record> Copy for Seen<'_, R> {}

/// The answers of the parts that have answered a look; `None` for a part without an object.
pub type Looks<'a, R> = BTreeMap<Part, Option<Seen<'a, R>>>;

/// The object that the parts show together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look<R: Record> {
    /// The record, and the version of the whole; `None` if there is none.
    pub found: Option<Versioned<R>>,
    /// The age of that version: the whole has existed since the latest of the writes (rule 19).
    pub age: Option<Duration>,
}

/// Fewer than q parts have answered, so their answers show nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew;

/// The meaning of a look: the first case that fits. The order is a part of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// M1: **no part that has answered has changed, and q of them count.** The record and version that were shown before.
    ///
    /// First, because `Free` and `Barred` know only the parts that have answered: each look with other answers would begin the wait for
    /// the lease anew.
    Same,
    /// M3: **q parts show one write.** That write, with its token. An own write counts only while the lease waits for it: after the
    /// next look that is not the same it has forgotten the write, and a write whose parts are given back gives nothing (M7).
    ///
    /// Before `GoesOn`, because an own write that has landed is an own write, too. The lease would never hear that it has landed.
    Landed,
    /// M7, M10: **q parts are as they were shown, or have changed by nothing but own writes and a request** (rule 14). The record
    /// that was shown before, with its token. A leader that can do without some parts counts those behind its term, too: beside
    /// its own part and theirs, no later term can have q.
    ///
    /// Before the others, because the half of an own write is no other holder, and a holder that is asked has not gone.
    GoesOn,
    /// M6: **another holder has released some of its parts, but fewer than q, and the rest of q are as they were.** The record that was
    /// shown before, with its token: its holder leads no more, and its last lease runs on.
    ///
    /// After `GoesOn`, in which nothing was released but by this candidate, or seen before. Before `Free`: q parts may look free while
    /// the window of the last renewal is still open on the holder's slower clock, if somebody else has released them. Before `Barred`,
    /// which would begin the wait anew with each part that is released.
    Leaves,
    /// M4: **nobody holds any of q parts**, or only this candidate, if it does not lead. A record without a holder, whose token is
    /// the q-th of the tokens of those parts, from below (M5).
    ///
    /// Before `Barred`, because beside q free parts any holder has at most n - q, which is less than q.
    Free,
    /// M4: **otherwise, any holder of a part bars all.** The record of the holder with the largest token, for the longest of the leases;
    /// a holder with this candidate's own name only if there is no other, because the lease of its earlier life must not hide
    /// another holder's. The token is the q-th of those of all parts, from below (M5).
    Barred,
}

/// One candidate's view of one lease in several objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quorum<R: InParts> {
    me: R::Identity,
    names: R::Parts,
    size: usize,
    needed: usize,
    shown: Option<Shown<R>>,
    /// The own writes that may be in a part, or may land yet, oldest first.
    own: VecDeque<Own<R>>,
}

/// The object that was shown last, and the knowledge of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shown<R: InParts> {
    found: Versioned<R>,
    places: Places<R>,
    /// `true` if the parts that count show the record, or have gone on from it: its holder knows a request in any that shows it for
    /// its own record.
    is_one_write: bool,
}

/// The parts of which the version is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Places<R: InParts>(BTreeMap<Part, Place<R>>);

/// One part as it was last seen or written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place<R: InParts> {
    /// `None` if there is no object.
    version: Option<R::Version>,
    /// `true` if the part belongs to what is shown, so that a takeover may replace it.
    counts: bool,
    /// The record of a part that does not count, or that nobody holds.
    aside: Option<Arc<R>>,
}

/// An own write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Own<R: InParts> {
    record: Arc<R>,
    /// `true` while the lease waits for the outcome of the write.
    is_awaited: bool,
}

impl<R: InParts> Quorum<R> {
    /// Creates the view of the candidate `me` before its first look. A leader needs `needed` of `size` parts: at least the smallest
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
    pub fn leads(&self) -> bool {
        self.shown.as_ref().is_some_and(|Shown { found: Versioned { record, .. }, .. }| {
            record.holder().is_some() && self.is_own(record)
        })
    }

    /// Returns `true` if what was shown last is one write, or held by nobody. Otherwise the parts that have not answered may be those
    /// that have changed.
    pub fn is_settled(&self) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.is_one_write || shown.found.record.holder().is_none())
    }

    /// M10: the number of parts that a leader leaves alone until another term begins, because their tokens are above its own.
    pub fn left_out(&self) -> usize {
        let is_out = |shown: &Shown<R>, place: &Place<R>| !place.is_behind(shown.found.record.token());
        let of = |shown: &Shown<R>| shown.places.0.values().filter(|place| is_out(shown, place)).count();
        self.shown.as_ref().filter(|_| self.leads()).map_or(0, of)
    }

    /// Returns `true` if a part shows an own write.
    pub fn is_own(&self, half: &R) -> bool {
        self.own_write(half).is_some()
    }

    /// Returns `true` if the answer of a part is another than what was known of it.
    pub fn has_changed(&self, looks: &Looks<'_, R>, part: Part) -> bool {
        self.shown.as_ref().is_some_and(|shown| !shown.places.shows(part, looks))
    }

    /// M4: the order of two parts. The larger one says who leads: the later term has the higher token.
    pub fn precedence(&self, half: &R) -> (bool, bool, u64) {
        let is_held = half.holder().is_some();
        (is_held && half.holder() != Some(&self.me), is_held, half.token())
    }

    // ---- Looks ----

    /// Takes the answers to a look, and returns what they show.
    ///
    /// # Errors
    ///
    /// Too few parts have answered.
    pub fn look(&mut self, looks: &Looks<'_, R>) -> Result<Look<R>, TooFew> {
        if looks.len() < self.needed {
            return Err(TooFew);
        }
        // Rule 19: the youngest part dates the whole. If one has no age, neither has the whole.
        let age = looks.values().flatten().map(|seen| seen.age).min().flatten();
        let (verdict, mut counted) = self.verdict(looks);
        if let (Verdict::Same, Some(shown)) = (verdict, &self.shown) {
            return Ok(Look { found: Some(shown.found.clone()), age });
        }
        // In this order: parts above the token, and then parts with marks of their own, count no more, and the version says so.
        let token = self.token(looks, verdict, &counted);
        counted.retain(|part| half(looks, *part).is_none_or(|half| Some(half.token()) <= token));
        let marks = self.marks(looks, &mut counted);
        let places = self.places(looks, verdict, &counted);
        let version = places.version();
        let record = token.and_then(|token| self.record(looks, verdict, (&counted, token), marks, &version));
        let landed =
            halves(looks, &counted).next().filter(|_| verdict == Verdict::Landed && counted.len() == self.size);
        if let Some(landed) = landed.filter(|landed| self.is_own(landed)) {
            self.forget_all_but(landed.write_id());
        }
        // The lease drops its own writes when it sees another version.
        self.own.iter_mut().for_each(|own| own.is_awaited = false);
        let found = record.map(|record| Versioned { record: Arc::new(record), version });
        let is_one_write = matches!(verdict, Verdict::Landed | Verdict::GoesOn);
        self.shown = found.clone().map(|found| Shown { found, places, is_one_write });
        Ok(Look { found, age })
    }

    /// The meaning of a look, and the parts that show it.
    pub fn verdict(&self, looks: &Looks<'_, R>) -> (Verdict, BTreeSet<Part>) {
        let shown = self.shown.as_ref();
        let of = |case: Verdict, those: Option<BTreeSet<Part>>| Some((case, those?));
        of(Verdict::Same, shown.and_then(|shown| self.unchanged(looks, shown)))
            .or_else(|| of(Verdict::Landed, self.landed_in(looks)))
            .or_else(|| of(Verdict::GoesOn, self.going_on(looks, shown?)))
            .or_else(|| of(Verdict::Leaves, self.left(looks, shown?)))
            .or_else(|| of(Verdict::Free, self.free(looks)))
            .unwrap_or_else(|| (Verdict::Barred, looks.keys().copied().collect()))
    }

    /// The parts of which something is true, if there are q.
    fn enough(&self, looks: &Looks<'_, R>, is_one: impl Fn(Part) -> bool) -> Option<BTreeSet<Part>> {
        let those: BTreeSet<Part> = looks.keys().copied().filter(|part| is_one(*part)).collect();
        (those.len() >= self.needed).then_some(those)
    }

    /// See [`Verdict::Same`].
    fn unchanged(&self, looks: &Looks<'_, R>, shown: &Shown<R>) -> Option<BTreeSet<Part>> {
        let is_same = looks.keys().all(|part| shown.places.shows(*part, looks));
        self.enough(looks, |part| is_same && shown.places.counts(part))
    }

    /// See [`Verdict::Landed`].
    fn landed_in(&self, looks: &Looks<'_, R>) -> Option<BTreeSet<Part>> {
        let may_count =
            |written: &&R| written.write_id().is_some() && self.own_write(written).is_none_or(|own| own.is_awaited);
        records(looks).filter(may_count).find_map(|written| {
            // M12: an id does not prove the content. Somebody may have written it beside another one.
            let is_it = |half: &R| is_same_write(half, written) && half.describes_as(written);
            self.enough(looks, |part| half(looks, part).is_some_and(is_it))
        })
    }

    /// See [`Verdict::GoesOn`].
    fn going_on(&self, looks: &Looks<'_, R>, shown: &Shown<R>) -> Option<BTreeSet<Part>> {
        if self.is_over(looks, &shown.found.record) {
            // A part that was given back goes on with nobody's lease.
            return None;
        }
        let goes_on = |part: Part| shown.stays(part, looks) || half(looks, part).is_some_and(|half| self.is_own(half));
        // M10: no later term can have q beside a leader's part and those that are behind it, and neither can another term with
        // the same token. Whoever releases a part of this term has its token, too.
        let leads = self.leads_without_all();
        let token = shown.found.record.token();
        let is_behind = |half: &R| {
            let is_of_term = half.holder().is_none() && half.token() == token;
            half.token() <= token && !is_of_term
        };
        let mut those = self.enough(looks, |part| goes_on(part) || leads && half(looks, part).is_none_or(is_behind))?;
        // A former leader takes what nobody holds together with its own parts.
        those.retain(|part| goes_on(*part) || is_free(looks, *part));
        Some(those)
    }

    /// See [`Verdict::Leaves`].
    fn left(&self, looks: &Looks<'_, R>, shown: &Shown<R>) -> Option<BTreeSet<Part>> {
        let record = &*shown.found.record;
        if record.holder() == Some(&self.me) {
            return None;
        }
        let is_theirs = |half: &R| half.holder().is_some() && half.holder() == record.holder();
        let is_held = |part: Part| shown.stays(part, looks) && half(looks, part).is_some_and(is_theirs);
        let is_left = |part: Part| {
            half(looks, part).is_some_and(|half| half.holder().is_none() && half.token() == record.token())
        };
        if self.is_over(looks, record) {
            // What its holder has released bars nobody beside a part that has refused the release.
            return None;
        }
        let those = self.enough(looks, |part| is_held(part) || is_left(part))?;
        looks.keys().any(|part| is_held(*part)).then_some(those)
    }

    /// M6: returns `true` if q parts have no holder, and the token of the shown holder's term or a later one. A part with an older token
    /// says nothing of this term, and neither does one without an object.
    fn is_over(&self, looks: &Looks<'_, R>, record: &R) -> bool {
        let is_over = |half: &R| half.holder().is_none() && half.token() >= record.token();
        let is_others = record.holder().is_some_and(|holder| *holder != self.me);
        is_others && self.enough(looks, |part| half(looks, part).is_some_and(is_over)).is_some()
    }

    /// See [`Verdict::Free`]. A leader that reads one of its parts has not lost it, so its part is not free.
    fn free(&self, looks: &Looks<'_, R>) -> Option<BTreeSet<Part>> {
        let leads = self.leads_without_all();
        self.enough(looks, |part| {
            !leads && half(looks, part).is_some_and(|half| self.is_own(half)) || is_free(looks, part)
        })
    }

    /// Returns `true` if the lease was shown as this candidate's own, and can be held without all parts.
    fn leads_without_all(&self) -> bool {
        self.needed < self.size && self.leads()
    }

    fn own_write(&self, half: &R) -> Option<&Own<R>> {
        self.own.iter().find(|own| is_same_write(half, &*own.record))
    }

    /// M5: the highest token that counts; `None` if no part that counts has a record. If the parts are free or barred, the next term's is
    /// above it: it is the q-th from below, so the highest if all are needed. A part with a token above those of q others is left to
    /// itself: whoever leads has q parts, and no single writer uses up the tokens of all (M12). In the other cases it is the highest
    /// of all, which leaves no part out.
    fn token(&self, looks: &Looks<'_, R>, verdict: Verdict, counted: &BTreeSet<Part>) -> Option<u64> {
        let mut tokens: Vec<u64> = halves(looks, counted).map(Record::token).collect();
        tokens.sort_unstable();
        match verdict {
            Verdict::Free | Verdict::Barred => tokens.get(self.needed - 1).or(tokens.last()).copied(),
            _ => records(looks).map(Record::token).max(),
        }
    }

    /// M12: the marks that each part shows. A mark that does not count is left out, and so is its part: nobody replaces a mark that
    /// may land in others, too. If too few parts are left, every mark counts.
    fn marks(&self, looks: &Looks<'_, R>, counted: &mut BTreeSet<Part>) -> BTreeMap<Part, Vec<R::Mark>> {
        let all = looks.keys().filter_map(|part| Some((*part, half(looks, *part)?.marks())));
        let mut all: BTreeMap<Part, Vec<R::Mark>> = all.filter(|(_, marks)| !marks.is_empty()).collect();
        let lists = all.clone();
        let is_stray = |mark: &R::Mark| {
            let with = lists.values().filter(|marks| marks.contains(mark)).count();
            !counts(looks.len() - with, self.needed)
        };
        let has_stray = |part: &Part| lists.get(part).is_some_and(|marks| marks.iter().any(is_stray));
        if counted.iter().filter(|part| !has_stray(part)).count() >= self.needed {
            counted.retain(|part| !has_stray(part));
            all.values_mut().for_each(|marks| marks.retain(|mark| !is_stray(mark)));
        }
        all
    }

    /// M1: what is known of the parts after a look. A part that has not answered is as it was, if its write still counts.
    fn places(&self, looks: &Looks<'_, R>, verdict: Verdict, counted: &BTreeSet<Part>) -> Places<R> {
        let goes_on = |shown: &&Shown<R>| match verdict {
            Verdict::Same | Verdict::GoesOn | Verdict::Leaves => true,
            Verdict::Landed => halves(looks, counted).any(|half| is_same_write(half, &*shown.found.record)),
            Verdict::Free | Verdict::Barred => false,
        };
        let known = self.shown.as_ref().filter(goes_on).map(|shown| shown.places.clone());
        let mut places = known.unwrap_or_else(|| Places(BTreeMap::new()));
        for (part, seen) in looks {
            places.0.insert(*part, Place::new(seen.as_ref(), counted.contains(part)));
        }
        places
    }

    /// M4, M9: the record that a look shows which is not the same.
    fn record(
        &self,
        looks: &Looks<'_, R>,
        verdict: Verdict,
        (counted, token): (&BTreeSet<Part>, u64),
        mut marks: BTreeMap<Part, Vec<R::Mark>>,
        version: &R::Version,
    ) -> Option<R> {
        let asked = self.asked_for(looks, verdict, counted);
        let shown = self.shown.as_ref().map(|shown| &*shown.found.record);
        let (base, content) = match verdict {
            Verdict::Landed => {
                let landed = halves(looks, counted).next()?;
                (Some(landed), Content { preferred: asked, ..content_of(landed) })
            }
            Verdict::Same | Verdict::GoesOn | Verdict::Leaves => {
                let before = shown?;
                (Some(before), Content { preferred: before.preferred().or(asked), ..content_of(before) })
            }
            Verdict::Free | Verdict::Barred => {
                // An own half bars nobody, and is nobody's record.
                let others = || halves(looks, counted).filter(|half| !self.is_own(half));
                let held = others().filter(|half| half.holder().is_some());
                let longest = held.map(Record::lease_duration).max();
                let front = others().rev().max_by_key(|half| self.precedence(half));
                let content = Content {
                    holder: front.and_then(Record::holder),
                    lease_duration: longest.unwrap_or(RELEASED_LEASE),
                    token,
                    // No part is the whole: no lease may take the whole for its own write, or for one that it knows.
                    write_id: Some(R::id_of_none(front.and_then(Record::write_id), version)),
                    preferred: front.and_then(Record::preferred),
                    mark: None,
                };
                (front, content)
            }
        };
        // A read that is out of date, or misses an object, takes nothing away.
        let before = shown.filter(|_| matches!(verdict, Verdict::GoesOn | Verdict::Leaves));
        let mut parts: Vec<Part> = looks.keys().copied().collect();
        // Of the parts that count, the list of the highest token has the last marks.
        parts.sort_by_key(|part| (!counted.contains(part), Reverse(half(looks, *part).map(Record::token))));
        let of_parts = parts.iter().filter_map(|part| marks.remove(part));
        let claims = Claims {
            base,
            is_one_write: matches!(verdict, Verdict::Landed | Verdict::GoesOn),
            before,
            shown: parts.iter().filter_map(|part| half(looks, *part)).collect(),
            marks: before.map(InParts::marks).into_iter().chain(of_parts).collect(),
            missing: looks.values().filter(|seen| seen.is_none()).count(),
            needed: self.needed,
        };
        Some(R::together(content, claims))
    }

    /// M9: the candidate that is asked to lead next. A request is a claim of one part: it counts only in the write that is shown, and
    /// unless q parts are without it. Where all parts are needed, half a request is obeyed.
    fn asked_for<'a>(
        &self,
        looks: &Looks<'a, R>,
        verdict: Verdict,
        counted: &BTreeSet<Part>,
    ) -> Option<&'a R::Identity> {
        let shown = self.shown.as_ref().and_then(|shown| shown.found.record.write_id());
        let counts = |half: &&R| {
            let is_asked = verdict == Verdict::Landed || half.write_id() == shown;
            let asks_too =
                |seen: &&Option<Seen<'_, R>>| seen.is_some_and(|seen| seen.record.preferred() == half.preferred());
            let without = looks.values().filter(|seen| !asks_too(seen)).count();
            self.needed == self.size || is_asked && counts(without, self.needed)
        };
        halves(looks, counted).filter(counts).find_map(Record::preferred)
    }

    fn forget_all_but(&mut self, write_id: Option<&R::WriteId>) {
        self.own.retain(|own| own.record.write_id() == write_id);
    }

    /// Forgets own writes that no part will show, for explorers.
    pub fn visit(&mut self, visitor: &mut impl Visitor<R>) {
        let asides =
            |shown: &Shown<R>| shown.places.0.values().filter_map(|place| place.aside.clone()).collect::<Vec<_>>();
        let known =
            self.shown.iter().flat_map(|shown| asides(shown).into_iter().chain([Arc::clone(&shown.found.record)]));
        let known: Vec<Arc<R>> = known.collect();
        let is_known = |own: &Own<R>| known.iter().any(|record| record.write_id() == own.record.write_id());
        self.own.retain(|own| is_known(own) || own.record.write_id().is_some_and(|id| visitor.may_land(id)));
    }
}

impl<R: InParts> Shown<R> {
    /// Returns `true` if a part that counts is as it was, but for the name of the next leader (rule 14).
    fn stays(&self, part: Part, looks: &Looks<'_, R>) -> bool {
        let is_annotated = || half(looks, part).is_some_and(|half| is_same_write(half, &*self.found.record));
        self.places.counts(part) && (self.places.shows(part, looks) || is_annotated())
    }
}

impl<R: InParts> Places<R> {
    /// M1: all versions as one. Two looks of the same versions that count other parts show other records, and a record must not be
    /// written over parts that it does not come from. So the version says which parts count.
    fn version(&self) -> R::Version {
        let those = |counts: bool| {
            let places = self.0.iter().filter(move |(_, place)| place.counts == counts);
            places.map(|(part, place)| (*part, place.version.as_ref())).collect()
        };
        R::whole(those(true), those(false))
    }

    fn counts(&self, part: Part) -> bool {
        self.0.get(&part).is_some_and(|place| place.counts)
    }

    /// Returns `true` if the answer of a part shows what is known of it.
    fn shows(&self, part: Part, looks: &Looks<'_, R>) -> bool {
        let version = seen(looks, part).map(|seen| seen.version);
        self.0.get(&part).is_some_and(|place| place.version.as_ref() == version)
    }
}

impl<R: InParts> Place<R> {
    fn new(seen: Option<&Seen<'_, R>>, counts: bool) -> Self {
        Self {
            version: seen.map(|seen| seen.version.clone()),
            counts,
            aside: seen
                .filter(|seen| !counts || seen.record.holder().is_none())
                .map(|seen| Arc::new(seen.record.clone())),
        }
    }

    fn written(version: R::Version) -> Self {
        Self { version: Some(version), counts: true, aside: None }
    }

    /// M10: returns `true` if a leader with this token may write over the part. No earlier term leads any more, and none with the same
    /// token does.
    fn is_behind(&self, token: u64) -> bool {
        self.counts || self.aside.as_ref().is_none_or(|record| record.token() <= token)
    }
}

fn seen<'a, R: Record>(looks: &Looks<'a, R>, part: Part) -> Option<Seen<'a, R>> {
    *looks.get(&part)?
}

/// The record of a part, if it has one.
fn half<'a, R: Record>(looks: &Looks<'a, R>, part: Part) -> Option<&'a R> {
    seen(looks, part).map(|seen| seen.record)
}

fn is_free<R: Record>(looks: &Looks<'_, R>, part: Part) -> bool {
    half(looks, part).is_none_or(|half| half.holder().is_none())
}

fn records<'a, R: Record>(looks: &Looks<'a, R>) -> impl Iterator<Item = &'a R> {
    looks.values().flatten().map(|seen| seen.record)
}

/// The records of these parts, the last first.
fn halves<'a, R: Record>(looks: &Looks<'a, R>, those: &BTreeSet<Part>) -> impl DoubleEndedIterator<Item = &'a R> {
    those.iter().rev().filter_map(|part| half(looks, *part))
}

/// The fields of a record that the rules read.
fn content_of<R: Record>(record: &R) -> Content<'_, R> {
    Content {
        holder: record.holder(),
        lease_duration: record.lease_duration(),
        token: record.token(),
        write_id: record.write_id().cloned(),
        preferred: record.preferred(),
        mark: None,
    }
}
