//! The names of a record's fields, and the years that its times may have.

use chrono::{DateTime, Datelike, Utc};

pub(super) const HOLDER_IDENTITY: &str = "holderIdentity";
pub(super) const LEASE_DURATION: &str = "leaseDuration";
pub(super) const LEASE_DURATION_SECONDS: &str = "leaseDurationSeconds";
pub(super) const ACQUIRE_TIME: &str = "acquireTime";
pub(super) const RENEW_TIME: &str = "renewTime";
pub(super) const LEADER_TRANSITIONS: &str = "leaderTransitions";
pub(super) const WRITE_ID: &str = "writeId";
pub(super) const PREFERRED_HOLDER: &str = "preferredHolder";
pub(super) const SESSION: &str = "session";
pub(super) const PEER: &str = "peer";
pub(super) const RANK: &str = "rank";
pub(super) const PARTS: &str = "parts";
/// An earlier name of fail-backs, which the format keeps.
pub(super) const FAILBACKS: &str = "takeBacks";
/// The list of the IDs of jobs that were done, newest first.
pub(crate) const COMPLETED_JOBS: &str = "completedJobs";

/// Returns `true` if RFC 3339 can represent the year. Other libraries reject a record with any other year.
pub(super) fn has_four_digit_year(time: DateTime<Utc>) -> bool {
    (0..=9999).contains(&time.year())
}
