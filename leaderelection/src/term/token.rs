//! The fencing token: the number of a term.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a term, larger than those of all earlier terms. A [fence](crate::fence) rejects smaller tokens.
///
/// In JSON and in text, a token is a number, at most [2<sup>53</sup> − 1](crate::lock::MAX_LEADER_TRANSITIONS). To
/// store it as a number, use `u64::from(token)`. The first token of a lock is 1, so 0 can mean that there is no token.
/// Only a lock that another library has created may show 0.
///
/// ```
/// use leaderelection::FencingToken;
///
/// let (first, second) = (FencingToken::new(1), FencingToken::from(2));
/// assert!(first < second);
/// assert_eq!((second.to_string(), u64::from(second)), ("2".to_owned(), 2));
/// assert_eq!(serde_json::to_string(&second)?, "2");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Turns a number back into a token, for example a number that a resource has stored.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

impl From<u64> for FencingToken {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

impl PartialEq<u64> for FencingToken {
    fn eq(&self, number: &u64) -> bool {
        self.0 == *number
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
