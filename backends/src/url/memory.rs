//! `memory:` URLs.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use leaderelection::MemoryStore;

use super::UrlError;
use super::parts::check_key;

/// An object in the memory of this process, for experiments: `memory:name`.
///
/// ```
/// use leaderelection_backends::url::MemoryLocation;
///
/// let location: MemoryLocation = "memory:locks/scheduler".parse()?;
/// assert_eq!(location.key, "locks/scheduler");
/// # Ok::<(), leaderelection_backends::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryLocation {
    /// The object's key: the whole text after the colon.
    pub key: String,
}

impl MemoryLocation {
    /// Names the object at `key` in the memory of this process.
    ///
    /// # Errors
    ///
    /// If the key is empty, or has a [character that nobody sees](leaderelection::names).
    pub fn new(key: impl Into<String>) -> Result<Self, UrlError> {
        let key = key.into();
        check_key(&key, "no name behind the colon").map_err(|problem| wrong(&problem))?;
        Ok(Self { key })
    }

    /// The store that all such URLs in this process share.
    #[must_use]
    pub fn open(&self) -> MemoryStore {
        static STORE: OnceLock<MemoryStore> = OnceLock::new();
        STORE.get_or_init(MemoryStore::new).clone()
    }
}

impl FromStr for MemoryLocation {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::new(text.strip_prefix("memory:").ok_or_else(|| wrong("the URL does not begin with memory:"))?)
    }
}

fn wrong(problem: &str) -> UrlError {
    UrlError { problem: problem.to_owned(), example: "memory:name" }
}

impl fmt::Display for MemoryLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory:{}", self.key)
    }
}
