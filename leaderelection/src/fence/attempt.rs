//! One write of a fenced object, and the evidence about that write in a later state of the object.

use bytes::Bytes;

use super::envelope::Envelope;
use crate::store::{Precondition, StoreError, Version};

/// The state of the object that a read showed. If there is no object, the envelope is empty.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) version: Option<Version>,
    pub(super) envelope: Envelope,
}

impl Found {
    pub(super) fn precondition(&self) -> Precondition {
        self.version.clone().map_or(Precondition::Absent, Precondition::Matches)
    }
}

/// A planned write, which may have been sent more than once.
#[derive(Debug)]
pub(super) struct Attempt<R> {
    pub(super) base: Found,
    pub(super) write_id: String,
    pub(super) body: Bytes,
    /// What the call returns if this write is committed.
    pub(super) outcome: R,
    /// The error that came instead of an answer: the write may have been committed.
    pub(super) doubt: Option<StoreError>,
}

/// The evidence about a write in a later state of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Committed,
    /// Nothing has happened yet: the write may still take effect.
    Open,
    /// Another write has taken effect, so this write never can.
    Lost,
    /// Another write has taken effect, and this write may have taken effect before it: the object no longer
    /// contains the id of this write.
    Hidden,
}

impl<R> Attempt<R> {
    pub(super) fn fate(&self, found: &Found) -> Fate {
        if found.envelope.shows(&self.write_id) {
            Fate::Committed
        } else if found.version == self.base.version {
            Fate::Open
        } else if found.version.is_some() && found.envelope.shows_all_since(&self.base.envelope) {
            Fate::Lost
        } else {
            Fate::Hidden
        }
    }
}
