//! Files that are written under another name, and get their own when they are complete.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Write as _};

use leaderelection::StoreError;
use rand::Rng as _;
use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;

use super::directory::Directory;
use super::error::{ambiguous, is_refusal_to_link, refused};
use super::{crash, sharing};

/// A complete file that waits for its name. Its other name is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Draft {
    /// The name of the object for people.
    object: String,
    name: String,
    pub(super) file: File,
    pub(super) drafts: Directory,
    /// The directory in which the file gets its name.
    pub(super) folder: Directory,
}

impl Drop for Draft {
    fn drop(&mut self) {
        remove(&self.drafts, &self.name, &self.object);
    }
}

impl Draft {
    /// Writes a file in the directory `drafts`, for those who may write in a directory with the metadata `above`, and syncs
    /// it.
    pub(super) fn write(
        object: &str,
        body: &[u8],
        drafts: Directory,
        folder: Directory,
        above: &Metadata,
    ) -> io::Result<Self> {
        let mut random = [0; 16];
        UnwrapErr(SysRng).fill_bytes(&mut random);
        let name = format!("{:032x}", u128::from_be_bytes(random));
        let mut draft = Self { object: object.to_owned(), file: drafts.create(&name)?, name, drafts, folder };
        crash::point();
        sharing::share_file(&draft.file, above)?;
        crash::point();
        draft.file.write_all(body)?;
        crash::point();
        draft.file.sync_all()?;
        crash::point();
        Ok(draft)
    }

    /// Gives the file its name. Returns `false` if the name is taken.
    pub(super) fn publish(&self, name: &str) -> Result<bool, StoreError> {
        match self.drafts.link(&self.name, &self.folder, name) {
            Ok(()) => {
                crash::point();
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) if is_refusal_to_link(&error) => Err(refused("write", &self.object, error)),
            Err(error) => Err(ambiguous(&self.object, "it could not be published", error)),
        }
    }
}

/// Removes a file that is no longer needed. A failure is harmless, but a warning shows that such files pile up.
pub(super) fn remove(directory: &Directory, name: &str, object: &str) {
    if let Err(error) = directory.remove(name).or_else(unless_absent) {
        tracing::warn!(%error, object, name, "cannot remove a file that is no longer needed");
    }
    crash::point();
}

pub(super) fn unless_absent(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
impl Draft {
    pub(super) fn set_modified(&self, time: std::time::SystemTime) {
        self.file.set_modified(time).unwrap();
    }

    pub(super) fn remove(&self) {
        self.drafts.remove(&self.name).unwrap();
    }
}
