//! Answers that come in the background, after a write was committed in q other parts (rules M6 and M10).

use super::plan::{Plan, Put};
use super::{KnownPart, ObservedPart, Part, Quorum};
use crate::record::InParts;

impl<R: InParts> Quorum<R> {
    /// M10: the parts whose versions are unknown, and which a leader reads once this write is committed.
    pub fn unread(&self, plan: &Plan<R>) -> impl Iterator<Item = Part> {
        let is_known = |part: &Part| self.shown.as_ref().is_some_and(|shown| shown.known.contains_key(part));
        plan.unknown.iter().copied().filter(move |part| !is_known(part))
    }

    /// M10: takes a late answer of a part, after `record` was committed in q others. `seen` is what a read found, or `record` with the
    /// version that its put produced. The term may have been renewed since. Returns the part's token if that is above the leader's, so the
    /// leader does not write this part for the rest of its term.
    ///
    /// `record` may be older than the last write of the term. That is safe. Two terms with q parts never have the same token, so the part
    /// still shows this term, or is behind or above it. Only a write that is committed in q parts gives leadership; what is learned here
    /// is only a version, which a put expects and a poll compares:
    ///
    /// - If the part has changed since, it rejects the put. If not, nobody else holds it, or it is behind the term.
    /// - If the part is unchanged, it counts for the term. An older write of the term is one of our own, so the term continues in any
    ///   case. Its lease ends before that of the last write, so a takeover has waited for it.
    /// - Whether a part counts because it shows another committed write, or is free, is decided only by the record that a poll reads.
    pub fn observe_part(&mut self, record: &R, part: Part, seen: Option<&ObservedPart<'_, R>>) -> Option<u64> {
        let known = KnownPart::new(seen, seen.is_some_and(|seen| self.is_own(seen.record)));
        let is_above = !known.is_writable(record.token());
        let leads = self.is_shown_as_holder();
        if let Some(shown) = self.shown.as_mut().filter(|shown| leads && shown.record().token() == record.token()) {
            // A version that is already known may come from a later answer than this one, so it stays.
            shown.known.entry(part).or_insert(known);
        }
        seen.map(|seen| seen.record.token()).filter(|_| is_above)
    }

    /// M6: the puts that write a planned release into all parts that count now. The term's last write may have reached some of them after
    /// the release was planned, and nobody else releases those.
    pub fn release_all(&self, release: &Plan<R>) -> Vec<Put<R>> {
        let shown = self.shown.iter().filter(|_| release.record().holder().is_none());
        let counted = shown.flat_map(|shown| &shown.known).filter(|(_, known)| known.counts);
        self.puts(release.record(), counted.map(|(part, known)| (*part, known.version.clone())))
    }
}
