//! The records of a probe: the requests that it has sent, and the objects that it may have left in the store.

use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) requests: usize,
    pub(super) latencies: Vec<Duration>,
    pub(super) last_error: Option<String>,
    /// The last request that ended had `last_error`.
    pub(super) fails: bool,
    /// The store has answered a request, and not only that it is unavailable.
    pub(super) has_answered: bool,
    /// The number of requests that ended, and whose effect is known.
    pub(super) clear: usize,
    pub(super) keys: usize,
    /// The store has accepted a write whose condition held.
    pub(super) has_accepted: bool,
    /// The number of creates without an answer: such a create may still take effect after the probe.
    pub(super) unanswered_creates: usize,
    pub(super) objects: BTreeMap<String, Object>,
}

impl Ledger {
    /// Returns `false` if the store has answered nothing so far, and forgets the objects if no request can have made one.
    pub(super) fn may_delete(&mut self) -> bool {
        if !self.has_answered && self.clear == self.requests {
            self.objects.clear();
        }
        self.has_answered
    }
}

/// An object that may be in the store because of the probe.
#[derive(Default)]
pub(super) struct Object {
    /// The number of creates with an unknown outcome: such a create may take effect after a deletion.
    pub(super) unsettled: usize,
    pub(super) swept: bool,
    /// The store denied the deletion, so another attempt is useless.
    pub(super) denied: bool,
}
