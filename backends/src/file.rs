//! A store in a local directory, for candidates on one machine.
//!
//! # File systems
//!
//! The store needs a local file system with hard links and `fsync`: ext4, XFS, Btrfs, ZFS, APFS, and tmpfs for tests. Several
//! users of one machine may share a directory, and several containers a volume. The root of a container, which is an overlayfs,
//! is its own: a candidate in another container has another lock, and the first call there logs a warning.
//!
//! To share it among users, give it to a group to which all of them belong, with permission to write and the
//! set-group-id bit (`chgrp leaders DIRECTORY; chmod g+rwxs DIRECTORY`). What the store makes in a directory that the
//! group may write in is open to the group too, whatever the umask of the process.
//!
//! Those who share a directory can read, replace and delete what is in it, locks included. They cannot lead another
//! user's process out of it: below a directory in which others may write, no symbolic link is followed.
//!
//! NFS, SMB, 9p and FUSE are not supported, and on Linux the first call on one of them logs a warning. Their clients
//! answer from caches, and may repeat a request whose answer was lost. The winner of a race may then get the answer
//! that it lost, or two writers the answer that they won. Candidates on different machines need an object store in the
//! network.
//!
//! On a file system that ignores case, keys that differ only in case are one object.
//!
//! # Guarantees
//!
//! A write is on the disk before it is acknowledged. A crash of the process or of the machine, at any point,
//! leaves the old object or the new one, and never a part of one.
//!
//! On a disk that hangs, a call occupies a thread until the disk answers. While a call of a store takes longer than a
//! second, further calls of that store and its clones wait for it, so that tries without an end do not fill all threads
//! of the runtime.
//!
//! No candidate ever waits for another one. A store under an OS lock would be simpler. But a process that is
//! stopped while it holds such a lock (`SIGSTOP`, a debugger, a suspended container) would stop all other
//! processes too, and an election has to survive a stopped leader.
//!
//! # Files on the disk
//!
//! The object `locks/scheduler` is the directory `locks/scheduler/@`, and the content of the object is the file
//! with the highest number in that directory:
//!
//! ```text
//! <directory>/locks/scheduler/@/42      the object, at version 42
//! <directory>/locks/scheduler/@/tmp/    files that are being written
//! ```
//!
//! Numbers are never used again, so a deleted object leaves the number of its deletion behind, as an empty file. To
//! inspect a lock, run `cat <directory>/locks/scheduler/@/[0-9]*`. To remove the last trace of a lock, remove its
//! directory while no candidate runs. Objects of a probe leave no trace.

mod crash;
mod create_only;
mod directory;
mod draft;
mod error;
mod file_system;
mod gate;
mod key;
mod list;
mod names;
mod object;
mod sharing;
#[cfg(test)]
mod tests;
mod threads;

use std::fmt::Display;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::implement::{
    ConditionalStore, FromEnv, ListedPage, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{ObjectLock, StoreError, StoreErrorKind};

pub use create_only::CreateOnlyDirectory;
use gate::Gate;
use object::ObjectDirectory;

/// A lock in a [`FileStore`].
///
/// ```no_run
/// use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal};
/// use leaderelection_backends::file::FileLock;
///
/// async fn controller(leadership: Leadership) {
///     leadership.lost().await; // Work until then.
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let lock = FileLock::from_env("/var/lib/my-service", "locks/scheduler").await?;
///     let callbacks = LeaderCallbacks::new().on_start_leading(controller);
///     let config = LeaderElectionConfig::builder(lock, callbacks).build()?;
///     DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?; // Until SIGTERM or Ctrl-C.
///     Ok(())
/// }
/// ```
///
/// [`from_env`](ObjectLock::from_env) takes the path of the directory. The name is that of the other stores' locks, so that a
/// program changes one word to move: a directory needs nothing of the environment, and opening it never fails.
pub type FileLock = ObjectLock<FileStore>;

/// A [`ConditionalStore`] in a local directory. The [module](self) describes its guarantees.
///
/// Keys are relative paths such as `locks/scheduler`. No part of a key may be empty, begin with `.` or `@`, or
/// contain a backslash or NUL. Versions are unique, even after an object is deleted and created again.
///
/// The [age](VersionedObject::age) of an object is the time since its file was written, by the wall clock of the machine,
/// which is the clock of a local file system too. [Trust](leaderelection::LeaderElectionConfigBuilder::trust_store_clock) the age
/// only if nobody sets that clock forward by more than the slack.
///
/// Calls run on Tokio's threads for blocking work, and panic outside of a Tokio runtime. Dropping a call's
/// future abandons the answer, not the effect.
///
/// # Errors
///
/// In addition to the errors of the [contract](ConditionalStore):
///
/// - [`Rejected`](StoreErrorKind::Rejected) if the disk, a quota or the table of open files is full, or if there is no thread;
/// - [`Fatal`](StoreErrorKind::Fatal) for an invalid key, for missing permissions, on a read-only file system, and for
///   a symbolic link on the path below a directory in which others may write;
/// - [`Unreadable`](StoreErrorKind::Unreadable) if another program's file has the name of the key, or if a pipe or a
///   link is in the place of the object; the store never changes such a file;
/// - [`Ambiguous`](StoreErrorKind::Ambiguous) if the disk fails after the write became visible, or if other
///   writers have written again before this write is confirmed.
///
/// ```
/// use leaderelection::{ObjectStoreBasedLock, unique_identity};
/// use leaderelection_backends::file::{FileLock, FileStore};
///
/// let store = FileStore::new("/var/lib/my-service");
/// let lock = FileLock::new(store, "locks/scheduler", unique_identity());
/// assert_eq!(lock.describe(), "file:///var/lib/my-service/locks/scheduler");
/// ```
#[derive(Clone, Debug)]
pub struct FileStore {
    directory: Arc<Path>,
    gate: Gate,
    warned: Arc<Once>,
}

impl FileStore {
    /// Creates a store in `directory`. The first write creates the directory if it does not exist.
    ///
    /// A relative path is relative to the current working directory at this moment: a later change of the
    /// working directory does not move the store.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        // `absolute` fails for an empty path, which every call then refuses, or without a working directory.
        let directory = std::path::absolute(&directory).unwrap_or(directory).into();
        Self { directory, gate: Gate::new(), warned: Arc::new(Once::new()) }
    }

    /// Returns the directory of the store.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn object(&self, key: &str) -> Result<ObjectDirectory, StoreError> {
        let name = self.describe(key);
        key::check(key, &name)?;
        Ok(ObjectDirectory::new(self.named_directory()?, key, name))
    }

    /// Runs `work` on a thread that may block.
    async fn blocking<T, F>(&self, object: impl Display, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, StoreError> + Send + 'static,
    {
        let running = self.gate.enter().await;
        let (warned, directory) = (Arc::clone(&self.warned), Arc::clone(&self.directory));
        let call = move || {
            file_system::warn_once(&warned, &directory);
            let answer = work();
            // Not before the work has ended, even if nobody waits for its answer.
            drop(running);
            answer
        };
        match threads::begin(&object, call)?.await {
            Ok(answer) => answer,
            Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            Err(error) => {
                let message = format!("{object}: the runtime shut down during a call");
                Err(StoreError::new(StoreErrorKind::Ambiguous, message).with_source(error))
            }
        }
    }

    fn named_directory(&self) -> Result<&Arc<Path>, StoreError> {
        if self.directory.as_os_str().is_empty() {
            let message = "the path of the store's directory is empty: name a directory";
            return Err(StoreError::new(StoreErrorKind::Fatal, message));
        }
        Ok(&self.directory)
    }
}

/// Opens the directory, of which the environment knows nothing. Never fails.
#[async_trait]
impl FromEnv for FileStore {
    async fn from_env(directory: &str) -> Result<Self, StoreError> {
        Ok(Self::new(directory))
    }
}

#[async_trait]
impl ConditionalStore for FileStore {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        let object = self.object(key)?;
        self.blocking(self.describe(key), move || object.read()).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        StoreError::check_body(&body, || self.describe(key))?;
        let (object, precondition) = (self.object(key)?, precondition.clone());
        self.blocking(self.describe(key), move || object.write(&body, &precondition)).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        let (object, expected) = (self.object(key)?, expected.cloned().map(Precondition::Matches));
        let delete = move || match &expected {
            Some(precondition) => object.write(object::DELETED, precondition).map(drop),
            None => object.discard(),
        };
        self.blocking(self.describe(key), delete).await
    }

    async fn list_page(&self, prefix: &str, _: Option<&PageToken>, _: Option<u16>) -> Result<ListedPage, StoreError> {
        let (directory, prefix) = (self.named_directory()?.clone(), prefix.to_owned());
        let listed = self.blocking(self.describe(&prefix), move || list::objects(&directory, &prefix)).await?;
        Ok(ListedPage::new(listed, None))
    }

    fn describe(&self, key: &str) -> String {
        format!("file://{}", self.directory.join(key).display())
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}
