//! The waits before an acquisition, beyond that of the lease (rules 10 and 14).

use std::time::Duration;

use crate::clock::LocalInstant;

/// The waits before an acquisition, beyond the end of the lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Wait {
    /// The time after the end of the lease.
    pub(super) spread: Duration,
    /// The moment until which the named candidate goes first (rule 14).
    pub(super) courtesy_until: Option<LocalInstant>,
}
