//! What a member knows about its hand-overs.

use std::sync::Arc;

use crate::clock::LocalInstant;

/// A lock that is being handed over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Handoff {
    pub(super) to: Arc<str>,
    /// After the release: the moment of the next poll for its taker, and the moment at which the lock counts as not taken.
    pub(super) released: Option<(LocalInstant, LocalInstant)>,
}

/// A search for locks to hand over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RebalanceScan {
    /// The next lock to check.
    pub(super) next: u32,
    pub(super) has_found: bool,
    /// When the first of the locks that were led for less than one lease may be handed over.
    pub(super) ready_at: Option<LocalInstant>,
}

/// A member that is about to end its session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leaving {
    /// The moment at which the session ends, whatever it leads then.
    pub(super) until: LocalInstant,
    /// The next lock to release; `None` if the others do not get messages about each.
    pub(super) next: Option<u32>,
}
