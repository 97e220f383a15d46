//! A directory as a store that can only create: one file per object, published with `link`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::sequenced::{Content, CreateOnlyStore, Entry, MAX_CONTENT_BYTES};
use leaderelection::{StoreError, StoreErrorKind};
use uuid::Uuid;

use super::error::{ambiguous, is_refusal_to_link, refused};
use super::{FileStore, crash, key, sharing};

/// The directory of files that are being written. No key has such a part.
const DRAFTS: &str = ".drafts";

/// A [`CreateOnlyStore`] in a local directory: the object `a/b` is the file `a/b`.
///
/// It is for trying [`SequencedStore`](leaderelection::sequenced::SequencedStore) without a cloud, and for a history that
/// people can read with `ls` and `cat`. It needs the same file systems as [`FileStore`], which needs fewer steps for a
/// write. A crash leaves at most a file in the subdirectory `.drafts`, which may be removed at any time.
///
/// ```
/// use leaderelection::sequenced::SequencedStore;
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

    /// Runs `work` on the path of the object, with the object's name, on a thread that may block.
    async fn with_path<T, F>(&self, key: &str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Path, &Path, &str) -> Result<T, StoreError> + Send + 'static,
    {
        let name = self.name(key);
        key::check(key, &name)?;
        let root = self.0.named_directory()?.clone();
        let path = root.join(key);
        self.0.blocking(name.clone(), move || work(&root, &path, &name)).await
    }
}

#[async_trait]
impl CreateOnlyStore for CreateOnlyDirectory {
    async fn read(&self, key: &str) -> Result<Option<Content>, StoreError> {
        self.with_path(key, |_, path, name| read(path, name)).await
    }

    async fn create(&self, key: &str, content: Bytes) -> Result<(), StoreError> {
        self.with_path(key, move |root, path, name| create(root, path, name, &content)).await
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
        self.with_path(key, |_, path, name| {
            crash::point();
            match fs::remove_file(path) {
                Err(error) if !is_absence(&error) => Err(refused("remove", name, error)),
                _ => Ok(()),
            }
        })
        .await
    }

    fn describe(&self, key: &str) -> String {
        self.name(key)
    }
}

fn read(path: &Path, name: &str) -> Result<Option<Content>, StoreError> {
    let read = || {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::NotFound.into());
        }
        let mut bytes = Vec::new();
        file.take(MAX_CONTENT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let age = metadata.modified().ok().map(|modified| modified.elapsed().unwrap_or_default());
        io::Result::Ok((bytes, age))
    };
    match read() {
        Ok((bytes, _)) if bytes.len() > MAX_CONTENT_BYTES => {
            let message = format!("{name} is not a record: it has more than {MAX_CONTENT_BYTES} bytes: move it away");
            Err(StoreError::new(StoreErrorKind::Unreadable, message))
        }
        Ok((bytes, age)) => Ok(Some(Content::new(bytes).with_age(age))),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(refused("read", name, error)),
    }
}

fn create(root: &Path, path: &Path, name: &str, content: &[u8]) -> Result<(), StoreError> {
    let drafts = root.join(DRAFTS);
    let draft = drafts.join(Uuid::new_v4().simple().to_string());
    let folder = path.parent().unwrap_or(root);
    let write = || {
        sharing::create_directories(root, &drafts)?;
        sharing::create_directories(root, folder)?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
        crash::point();
        sharing::share(&file, folder)?;
        file.write_all(content)?;
        crash::point();
        file.sync_all()
    };
    let published = write().map_err(|error| refused("write", name, error)).and_then(|()| {
        crash::point();
        match fs::hard_link(&draft, path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(StoreError::new(StoreErrorKind::Conflict, format!("{name} exists: read it")))
            }
            Err(error) if is_refusal_to_link(&error) => Err(refused("write", name, error)),
            Err(error) => Err(ambiguous(name, "it could not be published", error)),
        }
    });
    crash::point();
    // A draft that stays behind does no harm.
    let _ = fs::remove_file(&draft);
    published?;
    crash::point();
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| ambiguous(name, "its directory could not be synced", error))
}

/// Adds the files in and below a folder whose keys start with `prefix`.
fn walk(root: &Path, folder: &str, prefix: &str, entries: &mut Vec<Entry>) -> io::Result<()> {
    let listed = match fs::read_dir(root.join(folder)) {
        Err(error) if is_absence(&error) => return Ok(()),
        listed => listed?,
    };
    for entry in listed {
        let entry = entry?;
        let Ok(part) = entry.file_name().into_string() else { continue };
        if !key::is_part(&part) {
            continue;
        }
        let key = if folder.is_empty() { part } else { format!("{folder}/{part}") };
        if entry.file_type()?.is_dir() {
            let below = format!("{key}/");
            if below.starts_with(prefix) || prefix.starts_with(&below) {
                walk(root, &key, prefix, entries)?;
            }
        } else if key.starts_with(prefix) {
            // A file that is removed meanwhile has no size, and a reader finds out that it is gone.
            entries.push(Entry::new(key, entry.metadata().ok().map(|metadata| metadata.len())));
        }
    }
    Ok(())
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}
