//! `memory:` URLs.

use std::fmt;
use std::future::ready;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use leaderelection::implement::ConditionalStore;
use leaderelection::{MemoryStore, StoreError};
use leaderelection_store_support::url::{Place, UrlError, check_key};
use leaderelection_store_support::{CompiledHere, text_of_url};

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
        check_key(&key, "no name after the colon").map_err(wrong)?;
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

fn wrong(problem: impl Into<String>) -> UrlError {
    UrlError::new(problem, "memory:name")
}

impl fmt::Display for MemoryLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory:{}", self.key)
    }
}

impl Place for MemoryLocation {
    fn key(&self) -> &str {
        &self.key
    }

    fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    fn store(&self) -> CompiledHere<'_, Result<Arc<dyn ConditionalStore>, StoreError>> {
        Box::pin(ready(Ok(Arc::new(self.open()) as Arc<dyn ConditionalStore>)))
    }
}

text_of_url!(MemoryLocation);
