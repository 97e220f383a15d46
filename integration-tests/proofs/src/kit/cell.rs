//! An object in the store.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::implement::{Version, VersionedRecord};

/// An object with a record.
#[derive(Clone, Debug, Hash)]
pub struct Cell {
    /// The content of the object.
    pub record: Arc<LeaderElectionRecord>,
    /// The version of the object: the write id, unless somebody changed the record of another.
    pub version: Version,
    /// The node that wrote the record; `None` if the node has crashed since, because a restarted node is another process.
    pub writer: Option<usize>,
    /// The time since the last write by the store's clock, where the store tells it.
    pub age: u64,
}

impl Cell {
    /// Creates the object that a write leaves. Versions are as unique as write ids.
    pub fn new(record: Arc<LeaderElectionRecord>, writer: Option<usize>) -> Self {
        let version = Version::new(record.write_id.as_deref().unwrap_or_default());
        Self { record, version, writer, age: 0 }
    }

    /// The answer to a read.
    pub fn read(&self, age: Option<Duration>) -> VersionedRecord {
        VersionedRecord::new((*self.record).clone(), self.version.clone()).with_age(age)
    }

    /// Returns `true` if the record has no holder.
    pub fn is_released(&self) -> bool {
        self.record.is_released()
    }

    /// Forgets who has written the record, if this node has.
    pub fn forget(&mut self, node: usize) {
        self.writer.take_if(|writer| *writer == node);
    }

    /// Returns `true` if the record is still that of a term of this node.
    pub fn is_of(&self, node: usize, token: u64) -> bool {
        self.writer == Some(node) && self.record.leader_transitions == token
    }
}
