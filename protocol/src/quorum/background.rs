//! Answers of parts that come after a write is committed in q others (rules M6 and M10).

use super::plan::{Plan, Put};
use super::{KnownPart, ObservedPart, Part, Quorum};
use crate::record::InParts;

impl<R: InParts> Quorum<R> {
    /// M10: the parts to read when this write is committed, because their versions are not known.
    pub fn unread(&self, plan: &Plan<R>) -> impl Iterator<Item = Part> {
        let is_known = |part: &Part| self.shown.as_ref().is_some_and(|shown| shown.places.contains_key(part));
        plan.unknown.iter().copied().filter(move |part| !is_known(part))
    }

    /// M10: takes what a part shows that has answered after this record is committed in q others, even if the term has been renewed
    /// since: what its read has found, or the record itself with the version that its put has made. Returns the token of a part
    /// that the leader leaves alone for the rest of its term, because its token is above the leader's.
    ///
    /// It may be a write before the last: no two terms with q parts have one token, so the part shows this term, or is behind or
    /// above it as before. Nobody leads by what is learned here, but by a write that is committed in q parts. A version is only
    /// what a put expects, and what a poll compares:
    ///
    /// - A part that has changed since refuses the put. One that has not is in nobody else's hands, or behind the term.
    /// - A part that is as it was counts for the term, and an older write of the term is one of our own, which goes on in any
    ///   case. Its lease ends before that of the last, so a takeover has waited for it.
    /// - What counts because another write is committed, or because nobody holds it, depends on the record that is read
    ///   alone.
    pub fn observe_part(&mut self, record: &R, part: Part, seen: Option<&ObservedPart<'_, R>>) -> Option<u64> {
        let place = KnownPart::new(seen, seen.is_some_and(|seen| self.is_own(seen.record)));
        let is_above = !place.is_behind(record.token());
        let leads = self.is_shown_as_holder();
        if let Some(shown) = self.shown.as_mut().filter(|shown| leads && shown.record().token() == record.token()) {
            // A version that is known comes from a poll, or from an answer that may be a later one, so it stays.
            shown.places.entry(part).or_insert(place);
        }
        seen.map(|seen| seen.record.token()).filter(|_| is_above)
    }

    /// M6: the puts of a planned release into all parts that count now. The last write of the term may have reached some of them
    /// since the release was planned, and nobody else releases those.
    pub fn release_all(&self, release: &Plan<R>) -> Vec<Put<R>> {
        let shown = self.shown.iter().filter(|_| release.record().holder().is_none());
        let counted = shown.flat_map(|shown| &shown.places).filter(|(_, place)| place.counts);
        self.puts(release.record(), counted.map(|(part, place)| (*part, place.version.clone())))
    }
}
