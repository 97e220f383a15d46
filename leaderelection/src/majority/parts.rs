//! The knowledge that a candidate has of each part of a lock.

use std::collections::BTreeMap;

use leaderelection_protocol::record::is_same_write;

use crate::lock::VersionedRecord;
use crate::lock::record::LeaderElectionRecord;
use crate::store::Version;

/// The answers of the parts that have answered a look; `None` for a part without an object.
pub type Looks = BTreeMap<usize, Option<VersionedRecord>>;

/// One part as it was last seen or written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The version; `None` if there is no object.
    pub(super) version: Option<Version>,
    /// `true` if the part belongs to what the lock shows, so that a takeover may replace it.
    pub(super) counts: bool,
    /// The record of a part that does not count.
    pub(super) aside: Option<Box<LeaderElectionRecord>>,
    /// The record of a part that counts and that nobody holds.
    pub(super) released: Option<Box<LeaderElectionRecord>>,
}

impl Place {
    pub(super) fn new(found: Option<&VersionedRecord>, counts: bool) -> Self {
        let record = |found: &VersionedRecord| Box::new(found.record.clone());
        Self {
            version: found.map(|found| found.version.clone()),
            counts,
            aside: found.filter(|_| !counts).map(record),
            released: found.filter(|found| counts && found.record.is_released()).map(record),
        }
    }

    pub(super) fn written(version: Version) -> Self {
        Self { version: Some(version), counts: true, aside: None, released: None }
    }

    /// Returns `true` if a leader with this token may write over the part. No earlier term leads any more, and none with
    /// the same token does.
    pub(super) fn is_behind(&self, token: u64) -> bool {
        self.aside.as_ref().is_none_or(|record| record.leader_transitions <= token)
    }
}

/// The parts of which a candidate knows the version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Parts(pub(super) BTreeMap<usize, Place>);

impl Parts {
    /// Returns all versions as one. Two looks of the same versions that count other parts show other records, and a record must
    /// not be written over parts that it does not come from. So the version says which parts count (M1).
    pub(super) fn version(&self) -> Version {
        let those = |counts: bool| {
            let places = self.0.iter().filter(move |(_, place)| place.counts == counts);
            places.map(|(part, place)| (*part, place.version.as_ref().map(Version::as_str))).collect::<BTreeMap<_, _>>()
        };
        Version::new(serde_json::json!([those(true), those(false)]).to_string())
    }

    pub(super) fn counts(&self, part: usize) -> bool {
        self.0.get(&part).is_some_and(|place| place.counts)
    }

    /// Returns `true` if the answer of a part shows what is known of it.
    pub(super) fn shows(&self, part: usize, looks: &Looks) -> bool {
        let version = found(looks, part).map(|found| &found.version);
        self.0.get(&part).is_some_and(|place| place.version.as_ref() == version)
    }
}

/// Returns what a part has shown, if it has an object.
pub(super) fn found(looks: &Looks, part: usize) -> Option<&VersionedRecord> {
    looks.get(&part)?.as_ref()
}

/// Returns the parts that count in what [`Parts::version`] has written.
pub(super) fn versions_in(version: &Version) -> Option<BTreeMap<usize, Option<Version>>> {
    let [counted, _]: [BTreeMap<usize, Option<String>>; 2] = serde_json::from_str(version.as_str()).ok()?;
    Some(counted.into_iter().map(|(part, version)| (part, version.map(Version::new))).collect())
}

/// Returns `true` if two parts show one write. The name of the next leader, the number of requests and unknown fields may
/// differ: they are claims of one part.
pub(super) fn is_one_write(half: &LeaderElectionRecord, other: &LeaderElectionRecord) -> bool {
    is_same_write(half, other) && half.peer == other.peer && half.rank == other.rank
}
