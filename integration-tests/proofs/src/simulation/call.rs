//! A call of a candidate that takes several requests: of a sequenced lock, or of two locks.

use super::clock::TrueTime;
use super::names::{RequestId, Shown};

/// The call that is under way. A client makes one call at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Call {
    pub(super) id: RequestId,
    pub(super) sent: TrueTime,
    /// The answer to some request was no true one.
    pub(super) was_deceived: bool,
    /// The writes that a read of two locks has shown.
    pub(super) shown: Shown,
    /// The highest number of a sequenced lock when the call began.
    pub(super) highest: u64,
    /// A read of a sequenced lock was told that there is no object although there is one.
    pub(super) was_blinded: bool,
}

impl Call {
    pub(super) fn begin(id: RequestId, sent: TrueTime) -> Self {
        Self { id, sent, ..Self::default() }
    }

    /// Records that the answer to a request of a call was no true one.
    pub(super) fn is_deceived(&mut self, id: RequestId) {
        self.was_deceived |= self.id == id;
    }
}
