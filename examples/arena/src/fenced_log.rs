//! A shared log that refuses entries of earlier leaders.
//!
//! Election alone cannot undo a write that a leader has sent before it lost the lease: a process may be frozen
//! for a minute between its last check and its write. A resource that must not be written by two leaders
//! therefore has to check the fencing token itself. This log is a minimal complete example of such a resource.

use std::fmt;

use leaderelection::{ConditionalStore, MAX_BODY_BYTES, Precondition, StoreError, StoreErrorKind};
use serde::{Deserialize, Serialize};

/// A log in one object of a store, one [`Entry`] to a line.
///
/// Appending reads the log, compares the tokens, and writes the log back if it did not change in between. The
/// check and the write are one atomic step, and a writer that dies or freezes half-way blocks no other writer.
/// An operating-system lock would not have this property: a frozen process would keep it.
///
/// The check refuses tokens smaller than the last entry's token. The first entry of a new leader therefore
/// shuts out all earlier leaders. A new leader should write an entry before it relies on the entries that it
/// reads.
///
/// ```
/// use leaderelection::MemoryStore;
/// use leaderelection_arena::fenced_log::{AppendError, Entry, FencedLog};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), AppendError> {
/// let log = FencedLog::new(MemoryStore::new(), "log");
/// log.append(&Entry::new(7, "node-1", "the first leader's work")).await?;
/// log.append(&Entry::new(8, "node-2", "the next leader's work")).await?;
///
/// let too_late = log.append(&Entry::new(7, "node-1", "frozen, and gone on")).await;
/// assert!(matches!(too_late, Err(AppendError::Fenced { token: 7, newest: 8 })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FencedLog<S> {
    store: S,
    key: String,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The fencing token of the writer's term.
    pub token: u64,
    /// The writer. This field is for people: the check compares only the token.
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
}

/// The reason for which an entry was not appended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// A later leader has written already, so the writer no longer leads.
    #[error("token {token} is fenced off by {newest}; stop working, another one leads")]
    Fenced {
        /// The entry's token.
        token: u64,
        /// The last entry's token.
        newest: u64,
    },
    /// The log has reached the largest size that a store accepts.
    #[error("{log} is full ({MAX_BODY_BYTES} bytes); begin another log under a new key")]
    Full {
        /// The store's name for the log.
        log: String,
    },
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log could not be written. After [`StoreErrorKind::Ambiguous`], the entry may or may not be in the
    /// log.
    #[error("cannot append to the log")]
    Write(#[source] StoreError),
}

/// The reason for which the log could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The store returned an error.
    #[error("cannot read the log")]
    Store(#[from] StoreError),
    /// The object is not a log.
    #[error("{log} is not a fenced log, line {line} is not an entry; give the log a key of its own")]
    NotALog {
        /// The store's name for the object.
        log: String,
        /// The first line that is not an entry, counted from 1.
        line: usize,
        /// The problem with this line.
        #[source]
        source: serde_json::Error,
    },
}

impl<S: ConditionalStore> FencedLog<S> {
    /// Opens the log at `key`, which need not exist.
    #[must_use]
    pub fn new(store: S, key: impl Into<String>) -> Self {
        Self { store, key: key.into() }
    }

    /// Creates the log if the key is free. Appending creates the log too; call this function to check
    /// beforehand that the store is writable and that the key is free.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Conflict`] if an object exists.
    pub async fn create(&self) -> Result<(), StoreError> {
        // Stores accept no empty objects, and an empty line is no entry.
        self.store.put(&self.key, "\n".into(), &Precondition::Absent).await.map(drop)
    }

    /// Appends one entry, unless a later leader has written.
    ///
    /// # Errors
    ///
    /// [`AppendError::Fenced`] tells a leader that it no longer leads.
    pub async fn append(&self, entry: &Entry) -> Result<(), AppendError> {
        loop {
            let (mut entries, precondition) = self.read().await?;
            if let Some(last) = entries.last()
                && last.token > entry.token
            {
                return Err(AppendError::Fenced { token: entry.token, newest: last.token });
            }
            entries.push(entry.clone());
            let body = to_lines(&entries);
            if body.len() > MAX_BODY_BYTES {
                return Err(AppendError::Full { log: self.to_string() });
            }
            match self.store.put(&self.key, body.into(), &precondition).await {
                Ok(_) => return Ok(()),
                // Another writer was faster, and may have a newer token: read and check again.
                Err(error) if error.kind() == StoreErrorKind::Conflict => {}
                Err(error) => return Err(AppendError::Write(error)),
            }
        }
    }

    /// Returns all entries, oldest first.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, or if the object at this key is not a log.
    pub async fn entries(&self) -> Result<Vec<Entry>, ReadError> {
        self.read().await.map(|(entries, _)| entries)
    }

    /// Returns the log, and the precondition for writing it back.
    async fn read(&self) -> Result<(Vec<Entry>, Precondition), ReadError> {
        let Some(object) = self.store.get(&self.key).await? else { return Ok((Vec::new(), Precondition::Absent)) };
        let entry = |(number, line): (usize, &[u8])| {
            serde_json::from_slice(line).map_err(|source| ReadError::NotALog {
                log: self.to_string(),
                line: number + 1,
                source,
            })
        };
        let lines = object.body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let entries = lines.enumerate().map(entry).collect::<Result<_, _>>()?;
        Ok((entries, Precondition::Matches(object.version)))
    }
}

impl<S: ConditionalStore> fmt::Display for FencedLog<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.store.describe(&self.key))
    }
}

fn to_lines(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("{}\n", serde_json::json!(entry))).collect()
}

#[cfg(test)]
mod tests {
    use leaderelection::MemoryStore;

    use super::*;

    fn log() -> FencedLog<MemoryStore> {
        FencedLog::new(MemoryStore::new(), "log")
    }

    #[tokio::test]
    async fn keeps_entries_in_order_and_one_to_a_line() {
        let log = log();
        let entries = [Entry::new(0, "a", "one"), Entry::new(0, "a", "two\nlines"), Entry::new(2, "b", "")];
        for entry in &entries {
            log.append(entry).await.unwrap();
        }
        assert_eq!(log.entries().await.unwrap(), entries);
        let body = log.store.get("log").await.unwrap().unwrap().body;
        assert_eq!(body.iter().filter(|&&byte| byte == b'\n').count(), entries.len());
    }

    #[tokio::test]
    async fn begins_only_where_there_is_nothing() {
        let log = log();
        log.create().await.unwrap();
        assert_eq!(log.entries().await.unwrap(), []);
        assert_eq!(log.create().await.unwrap_err().kind(), StoreErrorKind::Conflict);
        log.append(&Entry::new(0, "a", "")).await.unwrap();
        assert_eq!(log.entries().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn refuses_an_older_token_and_writes_nothing() {
        let log = log();
        log.append(&Entry::new(3, "b", "new")).await.unwrap();
        let error = log.append(&Entry::new(2, "a", "old")).await.unwrap_err();
        assert_eq!(error.to_string(), "token 2 is fenced off by 3; stop working, another one leads");
        assert_eq!(log.entries().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn writers_that_race_lose_no_entry() {
        let log = log();
        let writers: Vec<_> = (0..16)
            .map(|n| {
                let log = log.clone();
                tokio::spawn(async move { log.append(&Entry::new(0, format!("{n}"), "")).await })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap().unwrap();
        }
        assert_eq!(log.entries().await.unwrap().len(), 16);
    }

    #[tokio::test]
    async fn is_full_before_the_store_refuses() {
        let log = log();
        log.append(&Entry::new(0, "a", "x".repeat(MAX_BODY_BYTES - 100))).await.unwrap();
        let error = log.append(&Entry::new(0, "a", "x".repeat(100))).await.unwrap_err();
        assert_eq!(error.to_string(), "memory:log is full (65536 bytes); begin another log under a new key");
        assert_eq!(log.entries().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn leaves_an_object_that_is_no_log_alone() {
        let log = log();
        log.store.put("log", "somebody's photo".into(), &Precondition::Absent).await.unwrap();
        let error = log.append(&Entry::new(0, "a", "")).await.unwrap_err();
        assert!(error.to_string().starts_with("memory:log is not a fenced log, line 1 is not an entry"), "{error}");
        assert_eq!(log.store.get("log").await.unwrap().unwrap().body, "somebody's photo");
    }
}
