//! Combines the parts into the one record that they show (rules M4, M5, M9 and M12), after [`Quorum::verdict`] has chosen the parts that
//! count.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{ObservedParts, ObservedWhole, Part, Quorum, Verdict};
use crate::record::{Claims, Content, InParts, RELEASED_LEASE, Record, stands};

impl<R: InParts> Quorum<R> {
    /// M5: the q-th smallest token of these parts, which is the highest if all are needed. A part whose token is above those of q others
    /// is ignored. A leader has q parts anyway, and nobody can use up the tokens of all parts by writing one of them (M12). A part without
    /// an object has the lowest token; otherwise one writer could use up the tokens before the other parts have any.
    pub(super) fn quorum_token(
        &self,
        observed: &ObservedParts<'_, R>,
        parts: impl Iterator<Item = Part>,
    ) -> Option<u64> {
        let mut tokens: Vec<Option<u64>> = parts.map(|part| observed.copy(part).map(Record::token)).collect();
        tokens.sort_unstable();
        *tokens.get(self.needed - 1)?
    }

    /// M12: the marks of each part. A mark that q parts are without does not stand. It is dropped, and its part does not count, because a
    /// write there would remove a mark that other parts may still get. If this leaves too few parts, every mark stands; otherwise nobody
    /// could lead.
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

    /// M4, M9: combines the copies into the record that the poll shows, unless the verdict is [`Verdict::Same`].
    pub(super) fn record(
        &self,
        observed: &ObservedParts<'_, R>,
        (verdict, is_one_write): (Verdict, bool),
        (counted, token): (&BTreeSet<Part>, u64),
        mut marks: BTreeMap<Part, Vec<R::Mark>>,
        version: &R::Version,
    ) -> Option<R> {
        let shown = self.shown.as_ref().map(ObservedWhole::record);
        // Keeps what was shown before, because a read may be out of date or miss an object.
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
                    // This record is in no part, so its id must not be that of any write: the lease would take it for one that it knows.
                    write_id: Some(R::id_of_none(front.and_then(Record::write_id), version)),
                    preferred: front.and_then(Record::preferred),
                    mark: None,
                };
                (front, content)
            }
        };
        let mut parts: Vec<Part> = observed.parts().collect();
        // Among the parts that count, the one with the highest token has the newest list of marks.
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

    /// M9: the candidate that a request asks to lead next. A request is a claim. It stands only if it is on the write that is shown, and
    /// fewer than q parts are without it. If all parts are needed, a request in a single part is enough.
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
