//! One state of the lock's object.

use std::time::Duration;

use bytes::Bytes;
use leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
use leaderelection::{LeaderElectionRecord, VersionedObject};

use super::names::WriteNumber;

/// One state of the object.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) object: VersionedObject,
    pub(crate) number: WriteNumber,
    pub(crate) holder: String,
    /// The `Last-Modified` of the state.
    pub(crate) written: Option<Duration>,
}

/// Reads a record that a candidate has written.
pub(crate) fn parse(body: &Bytes) -> LeaderElectionRecord {
    LeaderElectionRecord::from_json(body, DEFAULT_MAX_LEASE_DURATION).expect("candidates write records")
}
