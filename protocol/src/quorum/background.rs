//! Answers of parts that come after the write was committed in q other parts (rules M6 and M10).

use super::plan::{Plan, Put};
use super::{KnownPart, ObservedPart, Part, Quorum};
use crate::record::InParts;

impl<R: InParts> Quorum<R> {
    /// M10: the parts that a leader reads once this write is committed, because their versions are still unknown.
    pub fn unread(&self, plan: &Plan<R>) -> impl Iterator<Item = Part> {
        let is_known = |part: &Part| self.shown.as_ref().is_some_and(|shown| shown.known.contains_key(part));
        plan.unknown.iter().copied().filter(move |part| !is_known(part))
    }

    /// M10: takes a late answer of a part, after `record` was committed in q others. `seen` is what a read found, or `record` with the
    /// version that its put produced. Returns the part's token if that is above the leader's, so the leader does not write this part for
    /// the rest of its term.
    ///
    /// The term may have been renewed since, so `record` may be older than the last write of the term. This is safe, because only a version
    /// is learned here, and only a write that is committed in q parts gives leadership. Later uses of the version are safe, too:
    ///
    /// - A put expects the version. If the part has changed since, it rejects the put. If not, nobody else holds the part, or it is behind
    ///   the term. A part above the term gets no put; two terms with q parts never have the same token.
    /// - A poll compares the version. If the part is unchanged and shows an older write of the term, it counts. This write is our own, so
    ///   the term continues. The lease of the write ends before that of the last one, so a takeover has waited for it.
    /// - In the verdicts `Committed` and `Free`, a part counts because of the record that the poll reads, and not because of this version.
    pub fn observe_part(&mut self, record: &R, part: Part, seen: Option<&ObservedPart<'_, R>>) -> Option<u64> {
        let known = KnownPart::new(seen, seen.is_some_and(|seen| self.is_own(seen.record)));
        let is_above = !known.is_writable(record.token());
        let leads = self.is_shown_as_holder();
        if let Some(shown) = self.shown.as_mut().filter(|shown| leads && shown.record().token() == record.token()) {
            // A version that is already known may come from a later answer than this one, so it is kept.
            shown.known.entry(part).or_insert(known);
        }
        seen.map(|seen| seen.record.token()).filter(|_| is_above)
    }

    /// M6: the puts that write a planned release into all parts that count now. The term's last write may have reached some of them after
    /// the release was planned, so the plan does not release those.
    pub fn release_all(&self, release: &Plan<R>) -> Vec<Put<R>> {
        let shown = self.shown.iter().filter(|_| release.record().holder().is_none());
        let counted = shown.flat_map(|shown| &shown.known).filter(|(_, known)| known.counts);
        self.puts(release.record(), counted.map(|(part, known)| (*part, known.version.clone())))
    }
}
