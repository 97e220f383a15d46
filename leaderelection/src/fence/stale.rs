//! The error of a token that is too small.

use crate::term::FencingToken;

/// A fencing token was refused, because the resource has seen a larger one.
///
/// The leader that sent the token no longer leads, and should stop its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fencing token {token} is stale, because {highest} has been seen; stop working: another leader has taken over")]
#[non_exhaustive]
pub struct StaleToken {
    /// The refused token.
    pub token: FencingToken,
    /// The largest token that the resource has seen.
    pub highest: FencingToken,
}

impl StaleToken {
    pub(super) fn unless_highest(token: FencingToken, highest: FencingToken) -> Result<(), Self> {
        if token < highest { Err(Self { token, highest }) } else { Ok(()) }
    }
}
