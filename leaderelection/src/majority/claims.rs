//! The claims of the parts beside their leases: tokens, jobs that are done, a purpose, the next leader (M9 and M12).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::parts::{Looks, found};
use super::view::{Verdict, View, halves, records};
use crate::lock::record::{LeaderElectionRecord, UnknownFields};

impl View {
    /// Returns `true` if a claim counts that some part shows: unless q parts are without it. Whatever has landed in q parts of
    /// this lock, or of one that suits it, has a part in common with any other q. So a claim that does not count has never
    /// landed, and no part bars all others by its word alone.
    pub(super) fn counts(&self, looks: &Looks, has: impl Fn(&LeaderElectionRecord) -> bool) -> bool {
        let lacks = looks.values().filter(|found| !found.as_ref().is_some_and(|found| has(&found.record)));
        lacks.count() < self.quorum
    }

    /// Returns `true` if another answer may change the claims that count, because the parts do not claim the same.
    pub(super) fn differ(&self, looks: &Looks) -> bool {
        let tokens: BTreeSet<u64> = records(looks).map(|half| half.leader_transitions).collect();
        let is_free = records(looks).all(LeaderElectionRecord::is_released);
        let mut all = looks.values().map(|found| {
            let record = &found.as_ref()?.record;
            let claims = (record.completed_jobs(), record.purpose(), record.preferred_holder.as_deref());
            (claims != Default::default()).then_some(claims)
        });
        let first = all.next();
        looks.len() < self.names.len() && (is_free && tokens.len() > 1 || all.any(|claims| Some(claims) != first))
    }

    /// The token that the parts show together, above which that of the next term is (M5). A part with a token above those of
    /// q others is left to itself: whoever leads has q, and no single writer uses up the tokens of all (M12).
    pub(super) fn token(&self, looks: &Looks, verdict: Verdict, counted: &BTreeSet<usize>) -> Option<u64> {
        let mut tokens: Vec<u64> = halves(looks, counted).map(|half| half.leader_transitions).collect();
        tokens.sort_unstable();
        match verdict {
            Verdict::Free | Verdict::Barred => tokens.get(self.quorum - 1).or(tokens.last()).copied(),
            _ => records(looks).map(|half| half.leader_transitions).max(),
        }
    }

    /// The jobs that each part says are done. A mark that does not count is left out, and so is its part: nobody replaces a
    /// mark that may land in others, too. If too few parts are left, every mark counts.
    pub(super) fn jobs(&self, looks: &Looks, counted: &mut BTreeSet<usize>) -> BTreeMap<usize, Vec<String>> {
        let all = looks.iter().filter_map(|(part, found)| Some((*part, found.as_ref()?.record.completed_jobs())));
        let mut all: BTreeMap<usize, Vec<String>> = all.filter(|(_, jobs)| !jobs.is_empty()).collect();
        let lists = all.clone();
        let is_stray =
            |job: &String| looks.len() - lists.values().filter(|jobs| jobs.contains(job)).count() >= self.quorum;
        let has_stray = |part: &usize| lists.get(part).is_some_and(|jobs| jobs.iter().any(is_stray));
        if counted.iter().filter(|part| !has_stray(part)).count() >= self.quorum {
            counted.retain(|part| !has_stray(part));
            all.values_mut().for_each(|jobs| jobs.retain(|job| !is_stray(job)));
        }
        all
    }

    /// Puts into a record what the parts claim, and what was shown before (M9). A read that is out of date, or misses an
    /// object, takes nothing away.
    pub(super) fn keep_claims(
        &self,
        record: &mut LeaderElectionRecord,
        (looks, counted): (&Looks, &BTreeSet<usize>),
        mut jobs: BTreeMap<usize, Vec<String>>,
        before: Option<&LeaderElectionRecord>,
    ) {
        let shown = |part: &usize| Some(&found(looks, *part)?.record);
        let mut parts: Vec<usize> = looks.keys().copied().collect();
        // Of the parts that count, the list of the highest token has the last jobs.
        parts.sort_by_key(|part| (!counted.contains(part), Reverse(shown(part).map(|half| half.leader_transitions))));
        let newest = || before.into_iter().chain(parts.iter().filter_map(shown));
        record.unknown = UnknownFields::default();
        newest().for_each(|half| record.unknown.add_missing(&half.unknown));
        record.forget_claims();
        record.keep_jobs(before.map(LeaderElectionRecord::completed_jobs).unwrap_or_default());
        parts.iter().for_each(|part| record.keep_jobs(jobs.remove(part).unwrap_or_default()));
        let counts = |purpose: &String| self.counts(looks, |other| other.purpose().as_ref() == Some(purpose));
        record.claim_for(newest().filter_map(LeaderElectionRecord::purpose).find(counts).as_deref());
    }
}
