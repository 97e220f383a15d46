//! One object: a directory of numbered files. The highest counts.
//!
//! The algorithm uses no lock; this is the argument for its correctness. A **generation** is a numbered file; n
//! is a number.
//!
//! - **A generation is complete and never changes.** A writer writes and syncs it under another name, and then
//!   links it to its number. An empty generation means that the object is deleted.
//! - **Numbers are taken in order, and each at most once as the newest.** `link` fails if the number is taken,
//!   and only a writer that saw n as the newest tries n+1. So of all writers that saw n, one gets n+1, and the
//!   others get a Conflict.
//! - **The newest generation is never removed.** A writer removes only generations below its own, and only
//!   after its own generation is on the disk.
//! - **A listing is a snapshot.** The directory holds little more than the newest generation, so the kernel
//!   lists it in one call, under the lock that also guards `link` and `unlink`. The newest generation in a
//!   listing was the object at the time of the listing. If a reader finds that generation gone when it opens
//!   the file, a newer generation exists, and the reader lists again.
//!
//! A writer can stop and continue at any later time. It can stop
//!
//! 1. *before it links*: If another writer has taken the number and that generation still exists, the stopped
//!    writer gets a Conflict. If that generation was **removed again**, the link succeeds, too late. But then a
//!    newer generation exists, and every listing shows the newer generation as the newest. The stopped writer
//!    finds the newer generation when it lists after linking, and returns Ambiguous.
//! 2. *between the link and that listing*: The write counts from the moment of the link, and other writers may
//!    continue from it. If they did, the stopped writer returns Ambiguous, because it cannot tell this case
//!    from the case before. Its caller then reads the current object.
//! 3. *while it removes*: The generations that it removes were below the newest when it listed, and still are.
//!
//! In none of these cases does any other process wait for the stopped writer.
//!
//! A power failure can undo a generation whose writer had no answer yet. The number of that generation can then be
//! taken a second time. Every process that has seen the first generation was on the same machine, so the power failure
//! ended that process too.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use leaderelection::implement::{MAX_BODY_BYTES, Precondition, Version, VersionedObject};
use leaderelection::{StoreError, StoreErrorKind};

use super::crash;
use super::directory::Directory;
use super::draft::{Draft, remove, unless_absent};
use super::error::{ambiguous, conflict, refused};

/// The directory with an object's generations, next to the directories of the keys below it.
pub(super) const GENERATIONS: &str = "@";

/// The body of a generation that says that the object is deleted.
pub(super) const DELETED: &[u8] = b"";

/// The subdirectory for drafts, separate from the generations, so that one call lists all generations.
const TEMPORARY: &str = "tmp";

/// The age at which a temporary file counts as left behind by a crash. A writer that was only stopped finds its
/// file gone and has to try again.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// The number of generations between two searches for files that crashes have left behind.
const SWEEP_EVERY: u64 = 64;

/// The number of listings after which a reader gives up if writers are always faster.
const MAX_LISTINGS: usize = 100;

/// The directory of an object, which need not exist.
#[derive(Debug)]
pub(super) struct ObjectDirectory {
    root: PathBuf,
    /// `<key>/@`
    generations: String,
    /// The name of the object for people.
    name: String,
}

/// The newest generation, open.
#[derive(Debug)]
pub(super) struct Newest {
    generation: u64,
    file: File,
    metadata: Metadata,
}

impl Newest {
    fn is_deletion(&self) -> bool {
        self.metadata.len() == 0
    }

    /// Returns the version of the object, if it exists.
    pub(super) fn version(&self) -> Option<Version> {
        (!self.is_deletion()).then(|| version(self.generation))
    }
}

impl ObjectDirectory {
    pub(super) fn new(root: &Path, key: &str, name: String) -> Self {
        Self { root: root.to_owned(), generations: format!("{key}/{GENERATIONS}"), name }
    }

    pub(super) fn read(&self) -> Result<Option<VersionedObject>, StoreError> {
        let Some(newest) = self.newest()?.filter(|newest| !newest.is_deletion()) else { return Ok(None) };
        let Newest { generation, file, metadata } = newest;
        if metadata.len() > MAX_BODY_BYTES as u64 {
            return Err(self.not_a_record(generation));
        }
        // A draft is written before it is published, and after its writer began to write.
        let age = metadata.modified().ok().map(|modified| modified.elapsed().unwrap_or_default());
        let mut body = Vec::with_capacity(MAX_BODY_BYTES.min(metadata.len() as usize));
        file.take(MAX_BODY_BYTES as u64).read_to_end(&mut body).map_err(|error| refused("read", &self.name, error))?;
        Ok(Some(VersionedObject::new(body, version(generation)).with_age(age)))
    }

    /// Writes a body, or [`DELETED`], if the precondition holds.
    pub(super) fn write(&self, body: &[u8], precondition: &Precondition) -> Result<Version, StoreError> {
        let generation = self.next_generation(precondition)?;
        let draft = self.draft(body)?;
        self.publish(&draft, generation)?;
        self.confirm(draft, generation)?;
        Ok(version(generation))
    }

    /// Removes every trace of the object, and the directories above it that hold nothing else.
    pub(super) fn discard(&self) -> Result<(), StoreError> {
        self.clear().or_else(unless_absent).map_err(|error| refused("remove", &self.name, error))?;
        let mut path = self.generations.as_str();
        while let Some((folder, name)) = split(path) {
            let removed = Directory::open(&self.root, folder).and_then(|folder| folder.remove_directory(name));
            match removed.or_else(unless_absent) {
                Err(error) if name == GENERATIONS => return Err(refused("remove", &self.name, error)),
                Err(_) => break,
                Ok(()) => path = folder,
            }
        }
        Ok(())
    }

    /// Removes all files of the object.
    fn clear(&self) -> io::Result<()> {
        let generations = Directory::open(&self.root, &self.generations)?;
        match generations.child(TEMPORARY) {
            Ok(drafts) => {
                drafts.names()?.iter().try_for_each(|draft| drafts.remove(draft).or_else(unless_absent))?;
                generations.remove_directory(TEMPORARY).or_else(unless_absent)?;
            }
            Err(error) => unless_absent(error)?,
        }
        generations.names()?.iter().try_for_each(|name| generations.remove(name).or_else(unless_absent))
    }

    /// Step 1: returns the number to take, if the precondition holds.
    pub(super) fn next_generation(&self, precondition: &Precondition) -> Result<u64, StoreError> {
        let newest = match self.newest() {
            // A foreign file at this key counts as an object, although as one that cannot be read.
            Err(error) if error.kind() == StoreErrorKind::Unreadable => return Err(conflict(&self.name, error)),
            newest => newest?,
        };
        let current = newest.as_ref().and_then(Newest::version);
        match (precondition, current) {
            (Precondition::Absent, None) => {}
            (Precondition::Matches(expected), Some(current)) if *expected == current => {}
            (_, None) => return Err(conflict(&self.name, "there is none")),
            (_, Some(current)) => return Err(conflict(&self.name, format_args!("it has version {current}"))),
        }
        newest.map_or(0, |newest| newest.generation).checked_add(1).ok_or_else(|| {
            let message =
                format!("{} has the largest possible version; remove its directory to start again", self.name);
            StoreError::new(StoreErrorKind::Fatal, message)
        })
    }

    /// Step 2: writes the body to a draft and syncs it.
    pub(super) fn draft(&self, body: &[u8]) -> Result<Draft, StoreError> {
        let write = || {
            let generations = Directory::make(&self.root, &self.generations)?;
            let drafts = generations.made(TEMPORARY)?;
            let above = drafts.metadata()?;
            Draft::write(&self.name, body, drafts, generations, &above)
        };
        write().map_err(|error| refused("write", &self.name, error))
    }

    /// Step 3: publishes the draft under its number, if that is free.
    pub(super) fn publish(&self, draft: &Draft, generation: u64) -> Result<(), StoreError> {
        if generation == 1 {
            self.sync_path().map_err(|error| refused("write", &self.name, error))?;
        }
        let published = draft.publish(&generation.to_string())?;
        if published { Ok(()) } else { Err(conflict(&self.name, "somebody else wrote first")) }
    }

    /// Step 4: checks that the number was not out of date, makes the write durable, and cleans up.
    pub(super) fn confirm(&self, draft: Draft, generation: u64) -> Result<(), StoreError> {
        // The listing comes before the sync: during a slow sync, other writers may have continued from this
        // generation.
        let generations =
            list(&draft.folder).map_err(|error| ambiguous(&self.name, "its directory could not be listed", error))?;
        if generations.last() != Some(&generation) {
            let message = format!(
                "cannot tell whether the write to {} came first, because others have written since; read it again",
                self.name
            );
            return Err(StoreError::new(StoreErrorKind::Ambiguous, message));
        }
        let synced = draft.folder.sync();
        synced.map_err(|error| ambiguous(&self.name, "its directory could not be synced", error))?;
        crash::point();
        for old in generations.iter().take_while(|old| **old < generation) {
            remove(&draft.folder, &old.to_string(), &self.name);
        }
        if generation.is_multiple_of(SWEEP_EVERY) {
            self.sweep(&draft);
        }
        Ok(())
    }

    /// Opens the newest generation.
    fn newest(&self) -> Result<Option<Newest>, StoreError> {
        match Directory::open(&self.root, &self.generations) {
            Ok(generations) => self.newest_in(&generations),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotADirectory && self.is_taken() => {
                let message = format!(
                    "{} is a file, but a lock is a directory: another program made the file; move it, or name the lock differently",
                    self.name
                );
                Err(StoreError::new(StoreErrorKind::Unreadable, message))
            }
            Err(error) => Err(refused("read", &self.name, error)),
        }
    }

    /// Opens the newest generation in the directory of an object.
    pub(super) fn newest_in(&self, directory: &Directory) -> Result<Option<Newest>, StoreError> {
        for _ in 0..MAX_LISTINGS {
            let generations = list(directory).map_err(|error| refused("read", &self.name, error))?;
            let Some(&generation) = generations.last() else { return Ok(None) };
            match directory.file(&generation.to_string()) {
                Ok(Some((file, metadata))) => return Ok(Some(Newest { generation, file, metadata })),
                Ok(None) => return Err(self.not_a_record(generation)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(refused("read", &self.name, error)),
            }
        }
        let message = format!("cannot read {}: it is written too often: try again later", self.name);
        Err(StoreError::new(StoreErrorKind::Rejected, message))
    }

    /// Returns `true` if a file, a pipe or a device has the name of the key.
    fn is_taken(&self) -> bool {
        let Some((key, _)) = split(&self.generations) else { return false };
        let Some((folder, name)) = split(key) else { return false };
        Directory::open(&self.root, folder)
            .and_then(|folder| folder.find(name))
            .is_ok_and(|(kind, _)| !kind.is_dir() && !kind.is_symlink())
    }

    fn not_a_record(&self, generation: u64) -> StoreError {
        let path = self.root.join(&self.generations).join(generation.to_string());
        let problem = format!("{} is not a file of at most {MAX_BODY_BYTES} bytes", path.display());
        let message = format!("{} is not a record: {problem}: move it away or choose another name", self.name);
        StoreError::new(StoreErrorKind::Unreadable, message)
    }

    /// Makes the new directory durable before its content becomes visible: later writers do not sync the parent
    /// directories again.
    fn sync_path(&self) -> io::Result<()> {
        let mut path = self.generations.as_str();
        while let Some((folder, _)) = split(path) {
            crash::point();
            Directory::open(&self.root, folder)?.sync()?;
            path = folder;
        }
        for above in self.root.ancestors().skip(1) {
            crash::point();
            // It may belong to another user, so that this process cannot open it.
            let _ = Directory::open(above, "").and_then(|directory| directory.sync());
        }
        Ok(())
    }

    /// Removes the drafts that crashed writers have left behind.
    fn sweep(&self, own: &Draft) {
        let sweep = || {
            // The file system's clock need not be right, and may differ from this process's clock.
            let now = own.file.metadata()?.modified()?;
            for name in own.drafts.names()? {
                let draft = own.drafts.file(&name).ok().flatten();
                let modified = draft.and_then(|(_, metadata)| metadata.modified().ok());
                crash::point();
                let age = modified.and_then(|modified| now.duration_since(modified).ok());
                if age.is_some_and(|age| age > ABANDONED) {
                    remove(&own.drafts, &name, &self.name);
                }
            }
            io::Result::Ok(())
        };
        if let Err(error) = sweep() {
            tracing::debug!(%error, object = self.name, "cannot look for abandoned files");
        }
    }
}

/// Returns all generations in a directory, in order; none if the directory was removed.
fn list(directory: &Directory) -> io::Result<Vec<u64>> {
    let names = directory.names().or_else(|error| unless_absent(error).map(|()| Vec::new()))?;
    let mut generations: Vec<u64> = names.iter().filter_map(|name| generation(name)).collect();
    generations.sort_unstable();
    Ok(generations)
}

/// Splits a path in the store into the folder and the name; `None` for the store's directory.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.is_empty() { None } else { Some(path.rsplit_once('/').unwrap_or(("", path))) }
}

/// Parses a generation's file name, which must have exactly the spelling of [`version`].
fn generation(name: &str) -> Option<u64> {
    name.parse().ok().filter(|generation: &u64| generation.to_string() == name)
}

fn version(generation: u64) -> Version {
    Version::new(generation.to_string())
}
