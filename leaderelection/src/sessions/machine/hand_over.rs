//! What a member knows about its hand-overs.

use std::sync::Arc;

use crate::clock::LocalInstant;

/// A lock that is being handed over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Handoff {
    /// The identity of the member that should take the lock.
    pub(super) to: Arc<str>,
    /// After the release: the moment of the next poll for the taker, and the moment from which the lock counts as refused.
    pub(super) released: Option<(LocalInstant, LocalInstant)>,
}

/// A search for locks to hand over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RebalanceScan {
    /// The next lock to check.
    pub(super) next: u32,
    pub(super) has_found: bool,
    /// When the first of the locks that this member has led for less than one lease may be handed over.
    pub(super) ready_at: Option<LocalInstant>,
}

/// A member that is about to end its session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leaving {
    /// The moment at which the session ends, even if it still leads locks.
    pub(super) until: LocalInstant,
    /// The next lock to release; `None` if the end of the session frees all locks at once, because some members get no messages.
    pub(super) next: Option<u32>,
}
