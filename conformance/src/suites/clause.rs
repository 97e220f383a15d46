//! The clauses of the contracts, in the words of the traits' documentation, and the end of a suite at a breach.

use std::fmt::Display;

use crate::contract::Breach;
pub(super) use crate::contract::{CONFLICT, DELETE, HONEST_ERRORS, LINEARIZABLE_READ, LINEARIZABLE_WRITE, VERSION};

pub(super) const ABSENT: &str = "`get` answers `None` if there is no object";
pub(super) const AGE: &str = "`age` is at most the time since the version was written, to one second";
pub(super) const BODY_SIZE: &str = "`put` refuses an empty body and one over MAX_BODY_BYTES as Fatal";
pub(super) const CREATE: &str = "`create` does nothing and answers Conflict if there is an object";
pub(super) const IDENTITY: &str = "`identity` is the name that the lock was made for";
pub(super) const LIST: &str =
    "`list` answers all objects whose keys start with the prefix, sorted, with the versions that reads show";
pub(super) const PAGES: &str = "all pages of `list_page` together have what `list` has, once, and a page that is asked for again has the same objects";
pub(super) const ONE_RESPONSE: &str = "one response: `get` returns a body and a version from the same response";
pub(super) const UNIQUE_VERSIONS: &str =
    "`has_unique_versions`: two writes always have different versions, even when their bodies are equal";
pub(super) const UPDATE: &str = "`update` does nothing and answers Conflict unless the record has the expected version";
pub(super) const WRITTEN: &str = "what was written is read back to the letter";

/// Ends the suite: the act `what` on `object` breaks `clause`.
pub(super) fn broken(object: &str, what: impl Display, clause: &'static str) -> ! {
    panic!("{object}: {}", Breach::new(what, clause))
}

/// Ends the suite unless `holds`.
pub(super) fn demand(holds: bool, object: &str, what: impl Display, clause: &'static str) {
    if !holds {
        broken(object, what, clause);
    }
}
