//! What the contracts say, in the words of the traits' documentation, and what a breach looks like.

use std::fmt::Display;

pub(super) const ABSENT: &str = "`get` answers `None` if there is no object";
pub(super) const BODY_SIZE: &str = "`put` refuses an empty body and one over MAX_BODY_BYTES as Fatal";
pub(super) const CONFLICT: &str = "`put` does nothing and answers Conflict if the precondition does not hold";
pub(super) const CREATE: &str = "`create` does nothing and answers Conflict if there is an object";
pub(super) const DELETE: &str = "`delete` does nothing and answers Conflict unless the object has the expected version";
pub(super) const HONEST_ERRORS: &str = "honest errors: the kind says what is known about the effect";
pub(super) const IDENTITY: &str = "`identity` is the name that the lock was made for";
pub(super) const LINEARIZABLE_READ: &str = "linearizable: a read returns the newest completed write";
pub(super) const LINEARIZABLE_WRITE: &str =
    "linearizable: of any number of writers that name the same precondition at most one succeeds";
pub(super) const LIST: &str = "`list` answers the keys of all objects that start with the prefix, sorted";
pub(super) const ONE_RESPONSE: &str = "one response: `get` returns a body and a version from the same response";
pub(super) const UNIQUE_VERSIONS: &str =
    "`has_unique_versions`: two writes always have different versions, even when their bodies are equal";
pub(super) const UPDATE: &str = "`update` does nothing and answers Conflict unless the record has the expected version";
pub(super) const VERSION: &str = "a version belongs to one content: different bodies have different versions";
pub(super) const WRITTEN: &str = "what was written is read back to the letter";

/// Ends the suite: `what` happened to `object`, and `clause` forbids it.
pub(super) fn broken(object: &str, what: impl Display, clause: &str) -> ! {
    panic!("{object}: {what}; the contract says: {clause}")
}

/// Ends the suite unless `holds`.
pub(super) fn demand(holds: bool, object: &str, what: impl Display, clause: &str) {
    if !holds {
        broken(object, what, clause);
    }
}
