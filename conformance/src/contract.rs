//! The clauses of the contracts, in the words of the traits' documentation, and a breach of one of them: for the
//! suites and the probe.

use std::fmt::Display;

pub(crate) const AGE: &str = "`age` is at most the time since the version was written, to one second";
pub(crate) const BODY_SIZE: &str = "`put` refuses an empty body and one over MAX_BODY_BYTES as Fatal";
pub(crate) const CONFLICT: &str = "`put` does nothing and answers Conflict if the precondition does not hold";
pub(crate) const CREATE_ONCE: &str = "one creator: of any number of creations of one key at most one succeeds";
pub(crate) const DELETE: &str = "`delete` does nothing and answers Conflict unless the object has the expected version";
pub(crate) const HONEST_ERRORS: &str = "honest errors: the kind says what is known about the effect";
pub(crate) const LINEARIZABLE_READ: &str = "linearizable: a read returns the newest completed write";
pub(crate) const LINEARIZABLE_WRITE: &str =
    "linearizable: of any number of writers that name the same precondition at most one succeeds";
pub(crate) const LIST: &str =
    "`list` answers all objects whose keys start with the prefix, sorted, with the versions that reads show";
pub(crate) const ONE_RESPONSE: &str = "one response: `get` returns a body and a version from the same response";
pub(crate) const PAGES: &str = "all pages of `list_page` together have what `list` has, once, and a page that is asked for again has the same objects";
pub(crate) const SEEKABLE: &str = "a page that is `seekable` can begin behind any object that is no folder, and then has those that follow it in the listing";
pub(crate) const STRONG_LISTING: &str = "after the answer to a creation, every listing has its key";
pub(crate) const VERSION: &str =
    "versions: two bodies at one key never have the same version, even if the object was deleted in between";
pub(crate) const WRITTEN: &str = "what was written is read back to the letter";

/// An act of a store, and the clause that forbids it.
#[derive(Debug, thiserror::Error)]
#[error("{what}; the contract says: {clause}")]
pub(crate) struct Breach {
    what: String,
    clause: &'static str,
}

impl Breach {
    pub(crate) fn new(what: impl Display, clause: &'static str) -> Self {
        Self { what: what.to_string(), clause }
    }

    /// Returns a breach unless `holds`.
    pub(crate) fn unless(holds: bool, what: impl Display, clause: &'static str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::new(what, clause)) }
    }
}
