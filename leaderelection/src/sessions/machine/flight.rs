//! The requests about locks that wait for their answers.

use super::SessionId;
use crate::election::BeginReason;

/// A request about a lock that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    /// The own session at the moment of the request.
    pub(super) session: SessionId,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Look,
    Take { token: u64, reason: BeginReason },
    Release,
}

impl Flight {
    /// Returns `true` if the request would make the lock ours.
    pub(super) fn takes(&self) -> bool {
        matches!(self.kind, Kind::Take { .. })
    }
}
