//! The time for which a candidate has followed, before it asks for the lease (rule 24).

use std::time::Duration;

use crate::clock::LocalInstant;

/// The time for which a candidate has followed, less what its failures have cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Settling {
    /// The time counts from this moment.
    Since(LocalInstant),
    /// The time counts from the next read that is answered, and has this advance.
    Paused(Duration),
}

impl Default for Settling {
    fn default() -> Self {
        Self::Paused(Duration::ZERO)
    }
}
