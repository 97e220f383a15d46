//! A record with its version and age, from one read.

use std::time::Duration;

use super::record::LeaderElectionRecord;
use crate::store::Version;

/// A record, with the version from the same response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct VersionedRecord {
    /// The content of the object.
    pub record: LeaderElectionRecord,
    /// The version of exactly this record.
    pub version: Version,
    /// The age of this version by the store's own clock, at the moment of the answer; `None` if the store does not
    /// report it. See [`VersionedObject::age`](crate::implement::VersionedObject::age).
    pub age: Option<Duration>,
}

impl VersionedRecord {
    /// Combines a record and a version; both must come from the same response.
    #[must_use]
    pub fn new(record: LeaderElectionRecord, version: Version) -> Self {
        Self { record, version, age: None }
    }

    /// Adds the age of the version, from the same response.
    #[must_use]
    pub fn with_age(mut self, age: Option<Duration>) -> Self {
        self.age = age;
        self
    }
}
