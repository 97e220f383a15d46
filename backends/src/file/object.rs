//! One object: a directory of numbered files, of which the highest counts.
//!
//! Without a lock, this is why it is right. A **generation** is a numbered file; n is a number.
//!
//! - **A generation is whole and never changes.** It is written under another name and synced, and
//!   then linked to its number. An empty one says that the object is deleted.
//! - **Numbers are taken in order, and each at most once as the newest.** `link` fails if the number is
//!   taken, and n+1 is only ever tried by a writer that saw n as the newest. So of all writers that saw
//!   n one gets n+1, and the others get a Conflict.
//! - **The newest generation is never removed.** A writer removes what is below its own, and only after
//!   its own is on the disk.
//! - **A listing is a snapshot.** The directory holds little more than the newest generation, so the
//!   kernel lists it in one call, under the lock that also guards `link` and `unlink`. The newest
//!   generation in a listing was the object at the time of the listing. It may be gone when it is
//!   opened: then there is a newer one, so list again.
//!
//! A writer that is stopped and goes on later, however much later, can stop
//!
//! 1. *before it links*: If its number was taken meanwhile and is still there, it gets a Conflict. If it
//!    was taken and **removed again**, the link succeeds, though too late. But then there is a newer
//!    generation, and nobody who lists sees anything but that one. The writer finds it when it lists
//!    after linking, and says Ambiguous.
//! 2. *between the link and that listing*: Its write counts as of the link. Others go on from there. If
//!    they did, it says Ambiguous, as it cannot tell this from the case before: its caller reads, and
//!    finds what others made of it.
//! 3. *while it removes*: What it removes was below the newest when it listed, and still is.
//!
//! In none of these does anybody wait for it.
//!
//! A power failure can take a generation back whose writer had not been told of success yet, and its
//! number can be taken a second time. Whoever has seen it was on the same machine.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use leaderelection::{MAX_BODY_BYTES, Precondition, StoreError, StoreErrorKind, Version, VersionedObject};
use uuid::Uuid;

use super::error::{ambiguous, conflict, is_refusal_to_link, refused};

/// The directory with an object's generations, next to the directories of the keys below it.
pub(super) const GENERATIONS: &str = "@";

/// The body of a generation that says that the object is deleted.
pub(super) const DELETED: &[u8] = b"";

/// Where generations are written, apart from them, so that listing those takes one call.
const TEMPORARY: &str = "tmp";

/// A temporary file that is older was left behind by a crash. Its writer, if it was only stopped, finds
/// that it is gone and has to try again.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// How many generations pass before somebody looks for what crashes have left behind.
const SWEEP_EVERY: u64 = 64;

/// How often a reader looks again that always comes just too late.
const MAX_LISTINGS: usize = 100;

/// Where an object is, if there is one.
#[derive(Debug)]
pub(super) struct ObjectDirectory {
    root: PathBuf,
    /// `<root>/<key>/@`
    generations: PathBuf,
    /// What people call the object.
    name: String,
}

/// The newest generation, open.
#[derive(Debug)]
struct Newest {
    generation: u64,
    file: File,
    metadata: Metadata,
}

impl Newest {
    fn is_deletion(&self) -> bool {
        self.metadata.len() == 0
    }
}

/// A file that is written and synced, and not published. Removed when dropped.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    file: File,
}

impl Drop for Draft {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

impl ObjectDirectory {
    pub(super) fn new(root: &Path, key: &str, name: String) -> Self {
        Self { root: root.to_owned(), generations: root.join(key).join(GENERATIONS), name }
    }

    pub(super) fn read(&self) -> Result<Option<VersionedObject>, StoreError> {
        let Some(newest) = self.newest()?.filter(|newest| !newest.is_deletion()) else { return Ok(None) };
        let Newest { generation, file, metadata } = newest;
        if !metadata.is_file() || metadata.len() > MAX_BODY_BYTES as u64 {
            let path = self.path(generation);
            let problem = format!("{} is not a file of at most {MAX_BODY_BYTES} bytes", path.display());
            let message = format!("{} is not a record: {problem}: move it away or choose another key", self.name);
            return Err(StoreError::new(StoreErrorKind::Unreadable, message));
        }
        let mut body = Vec::with_capacity(MAX_BODY_BYTES.min(metadata.len() as usize));
        file.take(MAX_BODY_BYTES as u64).read_to_end(&mut body).map_err(|error| refused("read", &self.name, error))?;
        Ok(Some(VersionedObject::new(body, version(generation))))
    }

    pub(super) fn exists(&self) -> Result<bool, StoreError> {
        Ok(self.newest()?.is_some_and(|newest| !newest.is_deletion()))
    }

    /// Writes a body, or [`DELETED`], if the precondition holds.
    pub(super) fn write(&self, body: &[u8], precondition: &Precondition) -> Result<Version, StoreError> {
        let generation = self.next_generation(precondition)?;
        let draft = self.draft(body)?;
        self.publish(&draft, generation)?;
        self.confirm(draft, generation)?;
        Ok(version(generation))
    }

    /// Step 1: the number to take, if the precondition holds.
    pub(super) fn next_generation(&self, precondition: &Precondition) -> Result<u64, StoreError> {
        let newest = match self.newest() {
            // What stands in the way is an object too, if none that could be read.
            Err(error) if error.kind() == StoreErrorKind::Unreadable => return Err(conflict(&self.name, error)),
            newest => newest?,
        };
        let current = newest.as_ref().filter(|newest| !newest.is_deletion()).map(|newest| version(newest.generation));
        match (precondition, current) {
            (Precondition::Absent, None) => {}
            (Precondition::Matches(expected), Some(current)) if *expected == current => {}
            (_, None) => return Err(conflict(&self.name, "there is none")),
            (_, Some(current)) => return Err(conflict(&self.name, format_args!("it has version {current}"))),
        }
        newest.map_or(0, |newest| newest.generation).checked_add(1).ok_or_else(|| {
            let message = format!("{} has the last version there is: remove its directory to start anew", self.name);
            StoreError::new(StoreErrorKind::Fatal, message)
        })
    }

    /// Step 2: writes the body aside and syncs it.
    pub(super) fn draft(&self, body: &[u8]) -> Result<Draft, StoreError> {
        let directory = self.generations.join(TEMPORARY);
        let path = directory.join(Uuid::new_v4().simple().to_string());
        let create = || OpenOptions::new().write(true).create_new(true).open(&path);
        let write = || {
            let file = match create() {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    fs::create_dir_all(&directory)?;
                    create()?
                }
                file => file?,
            };
            let mut draft = Draft { path: path.clone(), file };
            draft.file.write_all(body)?;
            draft.file.sync_all()?;
            Ok(draft)
        };
        write().map_err(|error| refused("write", &self.name, error))
    }

    /// Step 3: publishes the draft under its number, if that is free.
    pub(super) fn publish(&self, draft: &Draft, generation: u64) -> Result<(), StoreError> {
        if generation == 1 {
            self.sync_path().map_err(|error| refused("write", &self.name, error))?;
        }
        match fs::hard_link(&draft.path, self.path(generation)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(conflict(&self.name, "somebody else wrote first"))
            }
            Err(error) if is_refusal_to_link(&error) => Err(refused("write", &self.name, error)),
            Err(error) => Err(ambiguous(&self.name, "it could not be published", error)),
        }
    }

    /// Step 4: makes sure that the number was not out of date, makes the write last, and cleans up.
    pub(super) fn confirm(&self, draft: Draft, generation: u64) -> Result<(), StoreError> {
        // Listed before the sync, which takes so long that others may well have gone on from here.
        let generations =
            self.list().map_err(|error| ambiguous(&self.name, "its directory could not be listed", error))?;
        if generations.last() != Some(&generation) {
            let message =
                format!("cannot tell whether the write to {} came first: others wrote since: read it", self.name);
            return Err(StoreError::new(StoreErrorKind::Ambiguous, message));
        }
        sync_directory(&self.generations)
            .map_err(|error| ambiguous(&self.name, "its directory could not be synced", error))?;
        for old in generations.iter().take_while(|old| **old < generation) {
            remove(&self.path(*old));
        }
        if generation.is_multiple_of(SWEEP_EVERY) {
            self.sweep(&draft);
        }
        Ok(())
    }

    /// Opens the newest generation.
    fn newest(&self) -> Result<Option<Newest>, StoreError> {
        for _ in 0..MAX_LISTINGS {
            let generations = self.list().map_err(|error| self.not_listed(error))?;
            let Some(&generation) = generations.last() else { return Ok(None) };
            let open = || {
                let file = File::open(self.path(generation))?;
                let metadata = file.metadata()?;
                io::Result::Ok(Newest { generation, file, metadata })
            };
            match open() {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                newest => return newest.map(Some).map_err(|error| refused("read", &self.name, error)),
            }
        }
        let message = format!("cannot read {}: it is written too often: try again later", self.name);
        Err(StoreError::new(StoreErrorKind::Rejected, message))
    }

    /// All generations, in order; none if there is no directory.
    fn list(&self) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(&self.generations) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut generations = Vec::new();
        for entry in entries {
            generations.extend(entry?.file_name().to_str().and_then(generation));
        }
        generations.sort_unstable();
        Ok(generations)
    }

    fn not_listed(&self, error: io::Error) -> StoreError {
        let key = self.generations.parent().unwrap_or(&self.root);
        if error.kind() == ErrorKind::NotADirectory && self.root.is_dir() && key.is_file() {
            let message = format!("{} is a file of somebody else's: move it, or choose another key", self.name);
            return StoreError::new(StoreErrorKind::Unreadable, message).with_source(error);
        }
        refused("read", &self.name, error)
    }

    fn path(&self, generation: u64) -> PathBuf {
        self.generations.join(generation.to_string())
    }

    /// Makes the new directory last. Before anything in it can be seen: who goes on from there does not
    /// look up again.
    fn sync_path(&self) -> io::Result<()> {
        for directory in self.generations.ancestors().skip(1) {
            match sync_directory(directory) {
                // Above the store there may be directories that are not ours to open.
                Err(error) if directory.starts_with(&self.root) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes the drafts that crashed writers have left behind.
    fn sweep(&self, own: &Draft) {
        let sweep = || {
            // By the file system's clock, which need not be right, nor the same as this process's.
            let now = own.file.metadata()?.modified()?;
            for entry in fs::read_dir(self.generations.join(TEMPORARY))? {
                let entry = entry?;
                let age = now.duration_since(entry.metadata()?.modified()?);
                if age.is_ok_and(|age| age > ABANDONED) {
                    remove(&entry.path());
                }
            }
            io::Result::Ok(())
        };
        if let Err(error) = sweep() {
            tracing::debug!(%error, object = self.name, "cannot look for abandoned files");
        }
    }
}

/// A name is a generation only in the spelling that [`version`] gives it.
fn generation(name: &str) -> Option<u64> {
    name.parse().ok().filter(|generation: &u64| generation.to_string() == name)
}

fn version(generation: u64) -> Version {
    Version::new(generation.to_string())
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// What cannot be removed does no harm, but must not pile up unseen.
fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "cannot remove a file that is no longer needed");
    }
}

#[cfg(test)]
impl Draft {
    pub(super) fn set_modified(&self, time: std::time::SystemTime) {
        self.file.set_modified(time).unwrap();
    }

    pub(super) fn remove(&self) {
        fs::remove_file(&self.path).unwrap();
    }
}
