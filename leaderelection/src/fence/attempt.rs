//! One write of a fenced object, and what later reads of the object show about it.

use bytes::Bytes;

use super::envelope::Envelope;
use crate::store::{Precondition, StoreError, Version};

/// The object as a read showed it. If there is no object, the envelope is empty.
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

/// A write that was prepared once, and may be sent more than once.
#[derive(Debug)]
pub(super) struct Attempt<R> {
    pub(super) base: Found,
    pub(super) write_id: String,
    pub(super) body: Bytes,
    /// What the call returns if this write is committed.
    pub(super) outcome: R,
    /// The error of a request without an answer: the write may have been committed. `None` if all were answered.
    pub(super) doubt: Option<StoreError>,
}

/// What a later read shows about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Committed,
    /// The object is unchanged, so the write may still be committed.
    Open,
    /// Another write was committed instead, so this write cannot be committed any more.
    Lost,
    /// Other writes were committed. This write may be one of them: the object no longer has the ids of all of them.
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
