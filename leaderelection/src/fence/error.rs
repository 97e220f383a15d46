//! The errors of a fenced object. A caller should react to each kind differently.

use super::stale::StaleToken;
use crate::store::StoreError;

/// A failed read or write of a [`FencedObject`](crate::fence::FencedObject).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FencedError {
    /// A later leader has written. This write was not committed and never will be.
    #[error("cannot write {object}: {stale}")]
    Stale {
        /// The store's name for the object.
        object: String,
        /// The token of the write, and the larger token in the object.
        stale: StaleToken,
    },
    /// The object does not contain a fenced value of this type. Such an object is never overwritten.
    #[error("{object} does not hold a fenced value of this type; give the fenced object a key of its own")]
    Unreadable {
        /// The store's name for the object.
        object: String,
        /// The first problem in the object.
        #[source]
        source: serde_json::Error,
    },
    /// The value has no JSON form. Nothing has been written.
    #[error("cannot write {object}, because the value cannot be serialized as JSON; change the value's type")]
    Unserializable {
        /// The store's name for the object.
        object: String,
        /// The reason.
        #[source]
        source: serde_json::Error,
    },
    /// A request to the store failed, after retries if the problem was temporary. Nothing has been written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The answer to the write was lost, and later reads did not show whether the write was committed.
    ///
    /// The write may also be committed later, but not after another write of the object. Call
    /// [`claim`](crate::fence::FencedObject::claim) to find out: it returns a value that this write can no longer
    /// change.
    #[error("cannot tell if {object} was written; claim it again, and check the value")]
    Unknown {
        /// The store's name for the object.
        object: String,
        /// The error that came instead of the answer.
        #[source]
        source: StoreError,
    },
}

impl FencedError {
    /// Returns both tokens, if the write was refused because its token is stale. The caller no longer leads.
    #[must_use]
    pub fn stale(&self) -> Option<StaleToken> {
        match self {
            Self::Stale { stale, .. } => Some(*stale),
            _ => None,
        }
    }
}
