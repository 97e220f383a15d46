//! The record that the parts of a lease show together (rules M4, M5, M9 and M12), after [`Quorum::verdict`] has said which parts
//! count.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Looks, Part, Quorum, Verdict};
use crate::record::{Claims, Content, InParts, RELEASED_LEASE, Record, stands};

impl<R: InParts> Quorum<R> {
    /// M5: the highest token that counts; `None` if no part that counts has a record. If the parts are free or barred, the next term's is
    /// above it: it is the q-th from below, so the highest if all are needed. A part with a token above those of q others is left to
    /// itself: whoever leads has q parts, and no single writer uses up the tokens of all (M12). In the other cases it is the highest
    /// of all, which leaves no part out.
    pub(super) fn token(&self, looks: &Looks<'_, R>, verdict: Verdict, counted: &BTreeSet<Part>) -> Option<u64> {
        match verdict {
            Verdict::Free | Verdict::Barred => self
                .quorum_token(looks, counted.iter().copied())
                .or_else(|| looks.copies(counted).map(Record::token).max()),
            _ => looks.all().map(Record::token).max(),
        }
    }

    /// M5: the q-th of the tokens of these parts, from below: a part without an object has the lowest, or a single writer would use
    /// up the tokens before the others have any.
    pub(super) fn quorum_token(&self, looks: &Looks<'_, R>, parts: impl Iterator<Item = Part>) -> Option<u64> {
        let mut tokens: Vec<Option<u64>> = parts.map(|part| looks.copy(part).map(Record::token)).collect();
        tokens.sort_unstable();
        *tokens.get(self.needed - 1)?
    }

    /// M12: the marks that each part shows. A mark that does not stand is left out, and its part does not count: nobody replaces a mark that
    /// may land in others, too. If too few parts are left, every mark stands:
    /// nobody could lead otherwise.
    pub(super) fn marks(&self, looks: &Looks<'_, R>, counted: &mut BTreeSet<Part>) -> BTreeMap<Part, Vec<R::Mark>> {
        let all = looks.parts().filter_map(|part| Some((part, looks.copy(part)?.marks())));
        let mut all: BTreeMap<Part, Vec<R::Mark>> = all.filter(|(_, marks)| !marks.is_empty()).collect();
        let lists = all.clone();
        let is_stray = |mark: &R::Mark| {
            let with = lists.values().filter(|marks| marks.contains(mark)).count();
            !stands(looks.parts().count() - with, self.needed)
        };
        let has_stray = |part: &Part| lists.get(part).is_some_and(|marks| marks.iter().any(is_stray));
        if counted.iter().filter(|part| !has_stray(part)).count() >= self.needed {
            counted.retain(|part| !has_stray(part));
            all.values_mut().for_each(|marks| marks.retain(|mark| !is_stray(mark)));
        }
        all
    }

    /// M4, M9: the record that a look shows which is not the same.
    pub(super) fn record(
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
                let landed = looks.copies(counted).next()?;
                (Some(landed), Content { preferred: asked, ..Content::of(landed) })
            }
            Verdict::Same | Verdict::GoesOn | Verdict::Leaves => {
                let before = shown?;
                (Some(before), Content { preferred: before.preferred().or(asked), ..Content::of(before) })
            }
            Verdict::Free | Verdict::Barred => {
                // An own copy bars nobody, and is nobody's record.
                let others = || looks.copies(counted).filter(|copy| !self.is_own(copy));
                let held = others().filter(|copy| copy.holder().is_some());
                let longest = held.map(Record::lease_duration).max();
                let front = others().rev().max_by_key(|copy| self.precedence(copy));
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
        let mut parts: Vec<Part> = looks.parts().collect();
        // Of the parts that count, the list of the highest token has the last marks.
        parts.sort_by_key(|part| (!counted.contains(part), Reverse(looks.copy(*part).map(Record::token))));
        let of_parts = parts.iter().filter_map(|part| marks.remove(part));
        let claims = Claims {
            base,
            is_one_write: self.shows_one_write(looks, verdict, counted),
            before,
            shown: parts.iter().filter_map(|part| looks.copy(*part)).collect(),
            marks: before.map(InParts::marks).into_iter().chain(of_parts).collect(),
            missing: looks.parts().count() - looks.all().count(),
            needed: self.needed,
        };
        Some(R::together(content, claims))
    }

    /// M9: the candidate that is asked to lead next. A request is a claim of one part: it stands only in the write that is shown, and
    /// unless q parts are without it. Where all parts are needed, half a request is obeyed.
    fn asked_for<'a>(
        &self,
        looks: &Looks<'a, R>,
        verdict: Verdict,
        counted: &BTreeSet<Part>,
    ) -> Option<&'a R::Identity> {
        let shown = self.shown.as_ref().and_then(|shown| shown.found.record.write_id());
        let is_asked_for = |copy: &&R| {
            let is_of_shown = verdict == Verdict::Landed || copy.write_id() == shown;
            let asks_too = |part: &Part| looks.copy(*part).is_some_and(|other| other.preferred() == copy.preferred());
            let without = looks.parts().filter(|part| !asks_too(part)).count();
            self.needed == self.size || is_of_shown && stands(without, self.needed)
        };
        looks.copies(counted).filter(is_asked_for).find_map(Record::preferred)
    }
}
