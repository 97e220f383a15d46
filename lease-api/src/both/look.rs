//! The meaning of two places together, without I/O: rule M11 of the protocol.
//!
//! The quorum of the core serves one candidate, which knows its own writes and waits for holders by its election. A server has
//! many clients that elect by themselves, and keeps nothing of them: it tells a half by the field `both`, which a candidate
//! neither writes nor reads.

use std::cmp::Reverse;
use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::implement::{Version, VersionedObject};
use leaderelection::lock::RecordError;
use serde_json::json;
use tokio::time::Instant;

/// The field that names the write of a record if that needs both places.
pub(super) const BOTH: &str = "both";

/// The lease of nobody, as in client-go.
pub(super) const RELEASED_LEASE: Duration = Duration::from_secs(1);

/// The object in one of the places.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) record: LeaderElectionRecord,
    pub(super) version: Version,
    /// The last write needs both places.
    is_of_both: bool,
    /// A moment from which on this server has seen no other version.
    since: Instant,
}

impl Part {
    /// Reads an object that has just been read.
    pub(super) fn read(found: &VersionedObject) -> Result<Self, RecordError> {
        // A lease that is too long for other candidates is for them to refuse.
        Ok(Self::of(LeaderElectionRecord::from_json(&found.body, Duration::MAX)?, found.version.clone()))
    }

    /// The object with a record that is there now.
    pub(super) fn of(record: LeaderElectionRecord, version: Version) -> Self {
        let named = record.unknown.get(BOTH).and_then(|field| serde_json::from_str::<String>(field).ok());
        let is_of_both = named.is_some() && named == record.write_id;
        Self { record, version, is_of_both, since: Instant::now() }
    }

    fn is_held(&self) -> bool {
        !self.record.is_released()
    }

    fn is_of_term(&self, other: &Self) -> bool {
        let term = |part: &Self| (part.is_held(), part.record.leader_transitions);
        term(self) == term(other) && self.record.holder_identity == other.record.holder_identity
    }
}

/// M12: returns `true` if two records are one write. The id does not prove the content: whoever writes one place can repeat it.
pub(super) fn is_same_write(one: &LeaderElectionRecord, other: &LeaderElectionRecord) -> bool {
    one.write_id.is_some()
        && one.write_id == other.write_id
        && one.holder_identity == other.holder_identity
        && one.leader_transitions == other.leader_transitions
        && one.lease_duration == other.lease_duration
}

/// The objects in both places, the old one first.
#[derive(Clone, Debug, Default)]
pub(super) struct Look(pub(super) [Option<Part>; 2]);

impl Look {
    fn parts(&self) -> impl Iterator<Item = (usize, &Part)> {
        self.0.iter().enumerate().filter_map(|(side, part)| Some((side, part.as_ref()?)))
    }

    /// The version of both together.
    pub(super) fn version(&self) -> Version {
        let versions = self.0.each_ref().map(|part| part.as_ref().map(|part| part.version.as_str()));
        Version::new(json!(versions).to_string())
    }

    /// Takes from an earlier poll since when a version is there.
    pub(super) fn continue_from(&mut self, before: &Self) {
        for pair in self.0.iter_mut().zip(&before.0) {
            if let (Some(part), Some(before)) = pair
                && part.version == before.version
            {
                part.since = before.since;
            }
        }
    }

    /// Forgets what only a reader needs.
    pub(super) fn shorten(&mut self) {
        for part in self.0.iter_mut().flatten() {
            part.record.unknown = Default::default();
        }
    }

    /// Returns `true` if both places show one write.
    fn is_one_write(&self) -> bool {
        matches!(&self.0, [Some(old), Some(new)] if is_same_write(&old.record, &new.record))
    }

    /// Returns `true` if nobody leads by what one place shows: the write needs the other place too, which shows no write of
    /// the term.
    fn is_half(&self, side: usize, part: &Part) -> bool {
        part.is_held()
            && part.is_of_both
            && !self.0[usize::from(side == 0)].as_ref().is_some_and(|other| other.is_of_term(part))
    }

    /// The place that says who leads, if any does.
    fn front(&self) -> Option<(usize, &Part)> {
        let whole = self.parts().filter(|(side, part)| !self.is_half(*side, part));
        whole.max_by_key(|(side, part)| {
            (part.is_held(), part.record.leader_transitions, part.record.renew_time, Reverse(*side))
        })
    }

    /// The record that both places show together; `None` if there is none.
    pub(super) fn shown(&self) -> Option<LeaderElectionRecord> {
        let token = self.parts().map(|(_, part)| part.record.leader_transitions).max()?;
        if let (true, [Some(old), Some(new)]) = (self.is_one_write(), &self.0) {
            let mut record = new.record.clone();
            record.preferred_holder = record.preferred_holder.or_else(|| old.record.preferred_holder.clone());
            return Some(record);
        }
        let front = self.front().map(|(_, part)| part.record.clone());
        let mut record = front.unwrap_or_else(|| LeaderElectionRecord::new("", RELEASED_LEASE));
        record.leader_transitions = token;
        // This is no write, so nobody may take it for one.
        record.write_id = Some(self.version().as_str().to_owned());
        record.unknown = Default::default();
        let mut parts: Vec<_> = self.0.iter().rev().flatten().collect();
        parts.sort_by_key(|part| Reverse(part.record.leader_transitions));
        parts.iter().for_each(|part| record.keep_unknown_of(&part.record));
        Some(record)
    }

    /// Returns `true` if the record of a holder goes on with the term that both places show.
    pub(super) fn goes_on_with(&self, record: &LeaderElectionRecord) -> bool {
        let is_it = |part: &Part| {
            part.record.holder_identity == record.holder_identity
                && part.record.leader_transitions == record.leader_transitions
        };
        self.front().is_some_and(|(_, part)| is_it(part))
    }

    /// The part that blocks a write of this holder. Its own holder waits for nobody, and everybody waits for the one who
    /// is shown. For whoever is not shown, this server waits: a lease from the moment at which it has seen the version
    /// first.
    pub(super) fn bar(&self, holder: &str) -> Option<&Part> {
        if self.is_one_write() {
            return None;
        }
        let shown = self.front().map(|(side, _)| side);
        let hidden = self.parts().filter(|(side, part)| Some(*side) != shown && part.is_held());
        let mut live = hidden.map(|(_, part)| part).filter(|part| part.since.elapsed() < part.record.lease_duration);
        live.find(|part| part.record.holder_identity != holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(holder: &str, token: u64, write_id: &str) -> Option<Part> {
        let mut record = LeaderElectionRecord::new(holder, Duration::from_secs(15));
        (record.leader_transitions, record.write_id) = (token, Some(write_id.to_owned()));
        Some(Part::of(record, Version::new(write_id)))
    }

    fn of_both(holder: &str, token: u64, write_id: &str) -> Option<Part> {
        let mut part = part(holder, token, write_id)?;
        part.record.unknown.set(BOTH, &write_id);
        Some(Part::of(part.record, part.version))
    }

    #[test]
    fn nobody_leads_by_a_half_and_who_is_not_shown_blocks_others() {
        let mut renewed = of_both("a", 3, "1").unwrap().record;
        renewed.write_id = Some("2".to_owned());
        let renewed = Some(Part::of(renewed, Version::new("2")));
        for (what, look, shown, bars) in [
            ("one place has a leader", [part("a", 3, "1"), None], "a", false),
            ("a leader who has written into one place since", [renewed, None], "a", false),
            ("a leader beside a released place", [part("a", 3, "1"), part("", 3, "2")], "a", false),
            ("one write in both places", [of_both("a", 3, "1"), of_both("a", 3, "1")], "a", false),
            ("half of a renewal", [of_both("a", 3, "2"), of_both("a", 3, "1")], "a", true),
            ("half of a term", [of_both("a", 4, "2"), part("", 3, "1")], "", true),
            ("half of a further term of a holder", [of_both("a", 4, "2"), of_both("a", 3, "1")], "", true),
            ("halves of two holders with one token", [of_both("a", 4, "2"), of_both("c", 4, "1")], "", true),
        ] {
            let look = Look(look);
            assert_eq!(look.shown().unwrap().holder_identity, shown, "{what}");
            assert_eq!(look.bar("b").is_some(), bars, "{what}");
        }
    }

    #[test]
    fn a_term_goes_on_with_its_holder_and_its_token() {
        let look = Look([part("a", 3, "1"), None]);
        for (holder, token, goes_on) in [("a", 3, true), ("a", 4, false), ("b", 3, false)] {
            assert_eq!(look.goes_on_with(&part(holder, token, "2").unwrap().record), goes_on, "{holder} {token}");
        }
    }

    #[test]
    fn what_only_a_reader_needs_is_not_kept() {
        let mut look = Look([of_both("a", 3, "1"), None]);
        look.shorten();
        let [Some(part), None] = &look.0 else { panic!("{look:?}") };
        assert_eq!((part.record.unknown.get(BOTH), part.is_of_both), (None, true));
    }
}
