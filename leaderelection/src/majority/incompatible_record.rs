//! Refuses a lock if candidates with other parts use it, too (M8).

use std::sync::Arc;

use super::parts::PollAnswers;
use super::view::View;
use crate::lock::VersionedRecord;
use crate::lock::incompatible_record::IncompatibleRecord;
use crate::lock::record::{LeaderElectionRecord, LockParts};

impl View {
    /// Returns the record with the highest token in a poll if it is incompatible: its writer uses other parts, and
    /// could lead together with this candidate. `None` for a leader, because the parts that it holds exclude others.
    pub(super) fn incompatible_record(&self, polled: &PollAnswers) -> Option<IncompatibleRecord> {
        if self.quorum.is_shown_as_holder() {
            return None;
        }
        // M12: if any record names suitable parts, a claim to other parts is ignored if q parts are without it. If no
        // record does, one claim is enough, so that a wrong configuration is found before anybody leads with it.
        let names_suitable_parts = |record: &LeaderElectionRecord| {
            let theirs = record.lock_parts();
            theirs.is_some_and(|theirs| self.parts_in(theirs.term).suit(theirs))
        };
        let is_strange = |(part, found): &(&usize, &Option<VersionedRecord>)| {
            let record = found.as_ref().map(|found| &found.record).filter(|record| !self.quorum.is_own(record));
            record.is_some_and(|record| {
                self.incompatible_writer(&self.parts_in(record.leader_transitions), **part, record).is_some()
            })
        };
        let strange = polled.iter().filter(is_strange).count();
        if polled.len() - strange >= self.quorum.needed()
            && polled.values().flatten().any(|found| names_suitable_parts(&found.record))
        {
            return None;
        }
        let highest = polled.values().flatten().map(|found| found.record.leader_transitions).max()?;
        let ours = self.parts_in(highest);
        let found = polled.iter().filter_map(|(part, found)| Some((*part, &found.as_ref()?.record)));
        let newest = found.filter(|(_, record)| record.leader_transitions == highest && !self.quorum.is_own(record));
        newest.filter_map(|(part, record)| self.incompatible_writer(&ours, part, record)).next()
    }

    /// Returns `None` if the writer of one part is compatible. If its record names no parts, it uses this part alone.
    fn incompatible_writer(
        &self,
        ours: &LockParts,
        part: usize,
        record: &LeaderElectionRecord,
    ) -> Option<IncompatibleRecord> {
        let alone = || LockParts::new(1, vec![self.names[part].clone()], record.leader_transitions);
        let theirs = match &record.parts {
            _ if record.lock_parts().is_some() => record.parts.clone()?,
            _ if record.is_released() => return None,
            _ => alone(),
        };
        (!ours.suit(&theirs)).then(|| IncompatibleRecord::of_parts(&theirs, ours))
    }

    /// The parts of this lock, as this candidate writes them into the records of a term.
    pub(super) fn parts_in(&self, term: u64) -> Arc<LockParts> {
        LockParts::new(self.quorum.needed(), self.names.clone(), term)
    }
}
