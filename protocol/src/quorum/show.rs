//! Combines the parts into the one record that they show (rules M4, M5, M9 and M12), after [`Quorum::verdict`] has chosen the parts that
//! count.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{ObservedParts, ObservedWhole, Part, Quorum, Verdict};
use crate::record::{Claims, Content, InParts, RELEASED_LEASE, Record, stands};

impl<R: InParts> Quorum<R> {
    /// M5: the q-th smallest token of these parts. A part with a higher token is ignored, so the writer of one part
    /// cannot use up the tokens of all (M12). A part without an object has the lowest token: otherwise, the writer
    /// could use them up before the others have objects. Returns `None` if the q-th part has no object.
    pub(super) fn quorum_token(
        &self,
        observed: &ObservedParts<'_, R>,
        parts: impl Iterator<Item = Part>,
    ) -> Option<u64> {
        let mut tokens: Vec<Option<u64>> = parts.map(|part| observed.copy(part).map(Record::token)).collect();
        tokens.sort_unstable();
        *tokens.get(self.needed - 1)?
    }

    /// M12: returns the marks that stand, by part. A mark stands unless q parts are without it. A part with a mark that
    /// does not stand is removed from `counted`: a takeover there would remove the mark, although the release that
    /// carries it may still reach other parts. If too few parts to lead would be left, every mark stands.
    pub(super) fn exclude_stray_marks(
        &self,
        observed: &ObservedParts<'_, R>,
        counted: &mut BTreeSet<Part>,
    ) -> BTreeMap<Part, Vec<R::Mark>> {
        let marks_of = |part| Some((part, observed.copy(part)?.marks()));
        let found: BTreeMap<Part, Vec<R::Mark>> = observed.parts().filter_map(marks_of).collect();
        let is_standing = |mark: &R::Mark| {
            let with = found.values().filter(|marks| marks.contains(mark)).count();
            stands(observed.0.len() - with, self.needed)
        };
        let those_of = |marks: &Vec<R::Mark>| marks.iter().filter(|mark| is_standing(mark)).cloned().collect();
        let standing: BTreeMap<Part, Vec<R::Mark>> =
            found.iter().map(|(part, marks)| (*part, those_of(marks))).collect();
        let has_stray = |part: &Part| standing.get(part) != found.get(part);
        if counted.iter().filter(|part| !has_stray(part)).count() < self.needed {
            return found;
        }
        counted.retain(|part| !has_stray(part));
        standing
    }

    /// M4, M9: makes the record that the poll shows, from the parts that count. Not called if the verdict is [`Verdict::Same`].
    pub(super) fn record(
        &self,
        observed: &ObservedParts<'_, R>,
        (verdict, is_one_write): (Verdict, bool),
        (counted, token): (&BTreeSet<Part>, u64),
        mut marks: BTreeMap<Part, Vec<R::Mark>>,
        version: &R::Version,
    ) -> Option<R> {
        let shown = self.shown.as_ref().map(ObservedWhole::record);
        // `Some` if the shown record stays, because a read may be out of date or miss an object.
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
                // Our own copies block nobody, so they are ignored here.
                let others = || observed.copies(counted).filter(|copy| !self.is_own(copy));
                let held = others().filter(|copy| copy.holder().is_some());
                let longest = held.map(Record::lease_duration).max();
                let front = others().max_by_key(|copy| self.precedence(copy));
                let content = Content {
                    holder: front.and_then(Record::holder),
                    lease_duration: longest.unwrap_or(RELEASED_LEASE),
                    token,
                    // This record is in no part. If it had the id of a write, the lease could take it for that write.
                    write_id: Some(R::id_of_none(front.and_then(Record::write_id), version)),
                    preferred: front.and_then(Record::preferred),
                    mark: None,
                };
                (front, content)
            }
        };
        let mut parts: Vec<Part> = observed.parts().collect();
        // The newest list of marks comes first: that of the part with the highest token among those that count.
        parts.sort_by_key(|part| (!counted.contains(part), Reverse(observed.copy(*part).map(Record::token))));
        let of_parts = parts.iter().filter_map(|part| marks.remove(part));
        let claims = Claims {
            base,
            is_one_write,
            before,
            shown: parts.iter().filter_map(|part| observed.copy(*part)).collect(),
            marks: before.map(InParts::marks).into_iter().chain(of_parts).collect(),
            missing: observed.0.len() - observed.all_copies().count(),
            needed: self.needed,
        };
        Some(R::together(content, claims))
    }

    /// M9: the candidate that a request names as the next leader. If all parts are needed, a request in one part that
    /// counts is enough. Otherwise, it must have the id of the shown write, and fewer than q parts may lack it.
    fn asked_for<'a>(
        &self,
        observed: &ObservedParts<'a, R>,
        verdict: Verdict,
        counted: &BTreeSet<Part>,
    ) -> Option<&'a R::Identity> {
        let shown = self.shown.as_ref().and_then(|shown| shown.record().write_id());
        let is_followed = |copy: &&R| {
            let is_of_shown = verdict == Verdict::Committed || copy.write_id() == shown;
            let asks_too =
                |part: &Part| observed.copy(*part).is_some_and(|other| other.preferred() == copy.preferred());
            let without = observed.parts().filter(|part| !asks_too(part)).count();
            self.needed == self.size || is_of_shown && stands(without, self.needed)
        };
        observed.copies(counted).rev().filter(is_followed).find_map(Record::preferred)
    }
}
