//! A directory as a store that can only create: one file per object, published with `link`.

use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_sequenced::{Content, CreateOnlyStore, Entry, MAX_CONTENT_BYTES};

use super::directory::Directory;
use super::draft::Draft;
use super::error::{ambiguous, refused};
use super::{FileStore, crash, key};

/// The directory of files that are being written. No key has such a part.
const DRAFTS: &str = ".drafts";

/// A [`CreateOnlyStore`] in a local directory: the object `a/b` is the file `a/b`.
///
/// It is for trying [`SequencedStore`](leaderelection_sequenced::SequencedStore) without a cloud, and for a history that
/// people can read with `ls` and `cat`. It needs the same file systems as [`FileStore`], which needs fewer steps for a
/// write. A crash leaves at most a file in the subdirectory `.drafts`, which may be removed at any time.
///
/// ```
/// use leaderelection_sequenced::SequencedStore;
/// use leaderelection::{ObjectLock, ObjectStoreBasedLock, unique_identity};
/// use leaderelection_backends::file::CreateOnlyDirectory;
///
/// let store = SequencedStore::new(CreateOnlyDirectory::new("/var/lib/my-service"));
/// let lock = ObjectLock::new(store, "scheduler", unique_identity());
/// assert_eq!(lock.describe(), "sequenced+file:///var/lib/my-service/scheduler");
/// ```
#[derive(Clone, Debug)]
pub struct CreateOnlyDirectory(FileStore);

impl CreateOnlyDirectory {
    /// Creates a store in `directory`. The first creation makes the directory if it does not exist.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(FileStore::new(directory))
    }

    fn name(&self, key: &str) -> String {
        format!("sequenced+file://{}", self.0.directory().join(key).display())
    }

    /// Runs `work` on the place of the object, on a thread that may block.
    async fn with_place<T, F>(&self, key: &str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Place<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let name = self.name(key);
        key::check(key, &name)?;
        let (root, key) = (self.0.named_directory()?.clone(), key.to_owned());
        self.0
            .blocking(name.clone(), move || {
                let (folder, file) = key.rsplit_once('/').unwrap_or(("", &key));
                work(&Place { root: &root, folder, file, name: &name })
            })
            .await
    }
}

#[async_trait]
impl CreateOnlyStore for CreateOnlyDirectory {
    async fn read(&self, key: &str) -> Result<Option<Content>, StoreError> {
        self.with_place(key, read).await
    }

    async fn create(&self, key: &str, content: Bytes) -> Result<(), StoreError> {
        self.with_place(key, move |place| create(place, &content)).await
    }

    async fn list(&self, prefix: &str, _after: Option<&str>) -> Result<Vec<Entry>, StoreError> {
        let (root, name) = (self.0.named_directory()?.clone(), self.name(prefix));
        let (prefix, object) = (prefix.to_owned(), name.clone());
        let list = move || {
            crash::point();
            let mut entries = Vec::new();
            let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
            walk(&root, folder, &prefix, &mut entries).map_err(|error| refused("list", &name, error))?;
            Ok(entries)
        };
        self.0.blocking(object, list).await
    }

    async fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.with_place(key, |place| {
            crash::point();
            match Directory::open(place.root, place.folder).and_then(|folder| folder.remove(place.file)) {
                Err(error) if !is_absence(&error) => Err(refused("remove", place.name, error)),
                _ => Ok(()),
            }
        })
        .await
    }

    fn describe(&self, key: &str) -> String {
        self.name(key)
    }
}

/// The file of an object, and the name of the object for people.
struct Place<'a> {
    root: &'a Path,
    folder: &'a str,
    file: &'a str,
    name: &'a str,
}

fn read(place: &Place<'_>) -> Result<Option<Content>, StoreError> {
    let read = || {
        let folder = Directory::open(place.root, place.folder)?;
        let Some((file, metadata)) = folder.file(place.file)? else {
            let is_directory = folder.find(place.file)?.0.is_dir();
            return if is_directory { Err(ErrorKind::NotFound.into()) } else { Ok(None) };
        };
        let mut bytes = Vec::new();
        file.take(MAX_CONTENT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let age = metadata.modified().ok().map(|modified| modified.elapsed().unwrap_or_default());
        io::Result::Ok(Some((bytes, age)))
    };
    match read() {
        Ok(Some((bytes, age))) if bytes.len() <= MAX_CONTENT_BYTES => Ok(Some(Content::new(bytes).with_age(age))),
        Ok(_) => {
            let problem = format!("it is not a file of at most {MAX_CONTENT_BYTES} bytes: move it away");
            let message = format!("{} is not a record: {problem}", place.name);
            Err(StoreError::new(StoreErrorKind::Unreadable, message))
        }
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(refused("read", place.name, error)),
    }
}

fn create(place: &Place<'_>, content: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let (drafts, folder) = (Directory::make(place.root, DRAFTS)?, Directory::make(place.root, place.folder)?);
        let above = folder.metadata()?;
        Draft::write(place.name, content, drafts, folder, &above)
    };
    let draft = write().map_err(|error| refused("write", place.name, error))?;
    if !draft.publish(place.file)? {
        return Err(StoreError::new(StoreErrorKind::Conflict, format!("{} exists: read it", place.name)));
    }
    draft.folder.sync().map_err(|error| ambiguous(place.name, "its directory could not be synced", error))
}

/// Adds the files in and below a folder whose keys start with `prefix`.
fn walk(root: &Path, folder: &str, prefix: &str, entries: &mut Vec<Entry>) -> io::Result<()> {
    let listed = Directory::open(root, folder).and_then(|folder| folder.names().map(|names| (folder, names)));
    let (directory, names) = match listed {
        Err(error) if is_absence(&error) => return Ok(()),
        listed => listed?,
    };
    for part in names {
        if !key::is_part(&part) {
            continue;
        }
        // A file that is removed meanwhile has no size, and a reader finds out that it is gone.
        let found = directory.find(&part).ok();
        let key = if folder.is_empty() { part } else { format!("{folder}/{part}") };
        if found.is_some_and(|(kind, _)| kind.is_dir()) {
            let below = format!("{key}/");
            if below.starts_with(prefix) || prefix.starts_with(&below) {
                walk(root, &key, prefix, entries)?;
            }
        } else if key.starts_with(prefix) {
            entries.push(Entry::new(key, found.map(|(_, bytes)| bytes)));
        }
    }
    Ok(())
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}
