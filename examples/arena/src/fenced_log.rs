//! A shared log that refuses entries of earlier leaders.
//!
//! Election alone cannot undo a write that a leader has sent before it lost the lease: a process may be frozen
//! for a minute between its last check and its write. A resource that must not be written by two leaders
//! therefore has to check the fencing token itself. This log lets the library's fence do it.

use std::fmt;
use std::sync::Arc;

use leaderelection::fence::{FencedError, FencedObject};
use leaderelection::implement::ConditionalStore;
use serde::{Deserialize, Serialize};

/// A log in one object of a store.
///
/// ```
/// use std::sync::Arc;
/// use leaderelection::MemoryStore;
/// use leaderelection::fence::FencedError;
/// use leaderelection_arena::fenced_log::{Entry, FencedLog};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), FencedError> {
/// let log = FencedLog::new(Arc::new(MemoryStore::new()), "log");
/// log.append(&Entry::new(7, "node-1", "the first leader's work")).await?;
/// log.append(&Entry::new(8, "node-2", "the next leader's work")).await?;
///
/// let too_late = log.append(&Entry::new(7, "node-1", "frozen, and gone on")).await.unwrap_err();
/// assert_eq!(too_late.stale().map(|stale| stale.highest), Some(8.into()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FencedLog(FencedObject<Arc<dyn ConditionalStore>, Vec<Entry>>);

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The fencing token of the writer's term.
    pub token: u64,
    /// The writer. This field is for people: the fence compares only the token.
    pub writer: String,
    /// The content of the entry.
    pub text: String,
}

impl Entry {
    /// Creates an entry of `writer`, in the term with this fencing token.
    #[must_use]
    pub fn new(token: u64, writer: impl Into<String>, text: impl Into<String>) -> Self {
        Self { token, writer: writer.into(), text: text.into() }
    }

    /// Creates the entry with this number in the writer's term.
    #[must_use]
    pub fn numbered(token: u64, writer: impl Into<String>, number: u64) -> Self {
        Self::new(token, writer, format!("entry {number}"))
    }
}

impl FencedLog {
    /// Opens the log at `key`, which need not exist.
    #[must_use]
    pub fn new(store: Arc<dyn ConditionalStore>, key: impl Into<String>) -> Self {
        Self(FencedObject::new(store, key))
    }

    /// Creates the log if it does not exist, and so shows that the store is writable.
    ///
    /// # Errors
    ///
    /// The same as for [`append`](Self::append).
    pub async fn create(&self) -> Result<(), FencedError> {
        self.0.claim(0).await.map(drop)
    }

    /// Appends one entry, unless a later leader has written.
    ///
    /// # Errors
    ///
    /// [`FencedError::Stale`] tells a leader that it no longer leads.
    pub async fn append(&self, entry: &Entry) -> Result<(), FencedError> {
        let append = |entries: Option<Vec<Entry>>| {
            let mut entries = entries.unwrap_or_default();
            entries.push(entry.clone());
            entries
        };
        self.0.update(entry.token, append).await.map(drop)
    }

    /// Returns all entries, oldest first.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, or if the object at this key is not a log.
    pub async fn entries(&self) -> Result<Vec<Entry>, FencedError> {
        Ok(self.0.read().await?.value.unwrap_or_default())
    }
}

impl fmt::Display for FencedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
