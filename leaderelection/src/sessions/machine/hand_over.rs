//! A member's notes about the locks that it hands over, and about the end of its session.

use std::sync::Arc;

use crate::clock::LocalInstant;

/// A lock that is being handed over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Handoff {
    /// The identity of the member that should take the lock.
    pub(super) to: Arc<str>,
    /// `None` before the release; then the next poll for the new holder, and when a lock still free counts as refused.
    pub(super) released: Option<(LocalInstant, LocalInstant)>,
}

/// A search for locks to hand over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RebalanceScan {
    /// The next lock to check.
    pub(super) next: u32,
    /// `true` if it has found a lock to hand over.
    pub(super) has_found: bool,
    /// When the first of the locks that cannot be handed over yet is ready; `None` without such locks.
    pub(super) ready_at: Option<LocalInstant>,
}

/// A member that is about to end its session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leaving {
    /// The moment at which the session ends, even if the member still leads locks.
    pub(super) until: LocalInstant,
    /// The next lock to release; `None` if the session's end frees all at once, as some members send no messages.
    pub(super) next: Option<u32>,
}
