//! The record that the parts of a lease show together (rules M4, M5, M9 and M12), after [`Quorum::verdict`] has said which parts
//! count.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{ObservedParts, ObservedWhole, Part, Quorum, Verdict};
use crate::record::{Claims, Content, InParts, RELEASED_LEASE, Record, stands};

impl<R: InParts> Quorum<R> {
    /// M5: the q-th of the tokens of these parts, from below: so the highest if all are needed. A part with a token above those of q
    /// others is left to itself: whoever leads has q parts, and no single writer uses up the tokens of all (M12). A part without an
    /// object has the lowest, or the writer of one would use them up before the others have any.
    pub(super) fn quorum_token(
        &self,
        observed: &ObservedParts<'_, R>,
        parts: impl Iterator<Item = Part>,
    ) -> Option<u64> {
        let mut tokens: Vec<Option<u64>> = parts.map(|part| observed.copy(part).map(Record::token)).collect();
        tokens.sort_unstable();
        *tokens.get(self.needed - 1)?
    }

    /// M12: the marks that each part shows. A mark that does not stand is left out, and its part does not count: a
    /// write there would drop a mark that may be committed in other parts. If too few parts are left, every mark
    /// stands: nobody could lead otherwise.
    pub(super) fn marks(
        &self,
        observed: &ObservedParts<'_, R>,
        counted: &mut BTreeSet<Part>,
    ) -> BTreeMap<Part, Vec<R::Mark>> {
        let marks_of = |part| Some((part, observed.copy(part)?.marks()));
        let all: BTreeMap<Part, Vec<R::Mark>> = observed.parts().filter_map(marks_of).collect();
        let is_standing = |mark: &R::Mark| {
            let with = all.values().filter(|marks| marks.contains(mark)).count();
            stands(observed.0.len() - with, self.needed)
        };
        let standing = |marks: &Vec<R::Mark>| marks.iter().filter(|mark| is_standing(mark)).cloned().collect();
        let standing: BTreeMap<Part, Vec<R::Mark>> = all.iter().map(|(part, marks)| (*part, standing(marks))).collect();
        let has_stray = |part: &Part| standing.get(part) != all.get(part);
        if counted.iter().filter(|part| !has_stray(part)).count() < self.needed {
            return all;
        }
        counted.retain(|part| !has_stray(part));
        standing
    }

    /// M4, M9: the record that a poll shows, unless the verdict is [`Verdict::Same`].
    pub(super) fn record(
        &self,
        observed: &ObservedParts<'_, R>,
        (verdict, is_one_write): (Verdict, bool),
        (counted, token): (&BTreeSet<Part>, u64),
        mut marks: BTreeMap<Part, Vec<R::Mark>>,
        version: &R::Version,
    ) -> Option<R> {
        let shown = self.shown.as_ref().map(ObservedWhole::record);
        // A read that is out of date, or misses an object, takes nothing away.
        let before = shown.filter(|_| matches!(verdict, Verdict::Continues | Verdict::HandingOver));
        let (base, content) = match verdict {
            Verdict::Committed => {
                let committed = observed.copies(counted).next()?;
                (
                    Some(committed),
                    Content { preferred: self.asked_for(observed, verdict, counted), ..Content::of(committed) },
                )
            }
            Verdict::Same | Verdict::Continues | Verdict::HandingOver => {
                let asked = || self.asked_for(observed, verdict, counted);
                (before, Content { preferred: before?.preferred().or_else(asked), ..Content::of(before?) })
            }
            Verdict::Free | Verdict::Blocked => {
                // Our own copy blocks nobody, and is nobody's record.
                let others = || observed.copies(counted).filter(|copy| !self.is_own(copy));
                let held = others().filter(|copy| copy.holder().is_some());
                let longest = held.map(Record::lease_duration).max();
                let front = others().max_by_key(|copy| self.precedence(copy));
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
        let mut parts: Vec<Part> = observed.parts().collect();
        // Of the parts that count, the list of the highest token has the last marks.
        parts.sort_by_key(|part| (!counted.contains(part), Reverse(observed.copy(*part).map(Record::token))));
        let of_parts = parts.iter().filter_map(|part| marks.remove(part));
        let claims = Claims {
            base,
            is_one_write,
            before,
            shown: parts.iter().filter_map(|part| observed.copy(*part)).collect(),
            marks: before.map(InParts::marks).into_iter().chain(of_parts).collect(),
            missing: observed.0.len() - observed.all().count(),
            needed: self.needed,
        };
        Some(R::together(content, claims))
    }

    /// M9: the candidate that is asked to lead next. A request is a claim of one part: it stands only in the write that is shown,
    /// and unless q parts are without it. Where all parts are needed, half a request is followed.
    fn asked_for<'a>(
        &self,
        observed: &ObservedParts<'a, R>,
        verdict: Verdict,
        counted: &BTreeSet<Part>,
    ) -> Option<&'a R::Identity> {
        let shown = self.shown.as_ref().and_then(|shown| shown.record().write_id());
        let is_asked_for = |copy: &&R| {
            let is_of_shown = verdict == Verdict::Committed || copy.write_id() == shown;
            let asks_too =
                |part: &Part| observed.copy(*part).is_some_and(|other| other.preferred() == copy.preferred());
            let without = observed.parts().filter(|part| !asks_too(part)).count();
            self.needed == self.size || is_of_shown && stands(without, self.needed)
        };
        observed.copies(counted).rev().filter(is_asked_for).find_map(Record::preferred)
    }
}
