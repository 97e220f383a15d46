//! Open directories, below which no path leads elsewhere.
//!
//! Everybody who may write in a directory can put a symbolic link in the place of anything in it, at any moment. So a
//! path is followed only as far as nobody else may write. From there on, each directory is opened by its name in the
//! one above it, and a link is an error.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, linkat, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::{crash, names, sharing};

/// The permissions to write in a directory that those may have who do not own it.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The number of times that a directory is made while others remove it because it is empty.
const ATTEMPTS: usize = 100;

/// The number of links on a path that the system follows.
const MOST_LINKS: u32 = 40;

/// The longest path that the system takes. Directories that are opened one by one could be deeper.
const MAX_PATH_BYTES: usize = 4096;

/// A directory that serves as a place of names need not be readable.
#[cfg(any(target_os = "android", target_os = "linux"))]
const PLACE: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "android", target_os = "linux")))]
const PLACE: OFlags = OFlags::RDONLY;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// A directory that stays the same one if others rename it, or put something else in its place.
#[derive(Debug)]
pub(super) struct Directory(File);

impl Directory {
    /// Opens the directory `below` in `root`.
    pub(super) fn open(root: &Path, below: &str) -> io::Result<Self> {
        let Way { trusted, below } = Way::to(&path(root, below)?)?;
        below.iter().try_fold(Self::trust(&trusted)?, |directory, name| directory.child(name))
    }

    /// Opens the directory `below` in `root`, and makes what is missing.
    pub(super) fn make(root: &Path, below: &str) -> io::Result<Self> {
        let path = path(root, below)?;
        for _ in 0..ATTEMPTS {
            let Way { trusted, below } = Way::to(&path)?;
            let made = Self::trust(&trusted)
                .and_then(|base| below.iter().try_fold(base, |directory, name| directory.made(name)));
            match made {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                made => return made,
            }
        }
        Err(Errno::NOENT.into())
    }

    /// Opens a directory at a path on which nobody else may put a link.
    fn trust(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, PLACE | DIRECTORY, Mode::empty())?.into()))
    }

    /// Opens a directory in this one.
    pub(super) fn child(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        match openat(&self.0, name, PLACE | DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::NOTDIR) if self.find(name).is_ok_and(|(kind, _)| kind.is_symlink()) => Err(Errno::LOOP.into()),
            opened => Ok(Self(opened?.into())),
        }
    }

    /// Opens a directory further below this one, at a path of names.
    pub(super) fn below(&self, path: &str) -> io::Result<Self> {
        Path::new(path).iter().try_fold(Self(self.0.try_clone()?), |directory, name| directory.child(name))
    }

    /// Opens a directory in this one, and makes it if it is missing.
    pub(super) fn made(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        match self.child(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            child => return child,
        }
        match mkdirat(&self.0, name, Mode::from(0o777)) {
            Ok(()) => {
                crash::point();
                let made = self.child(name)?;
                sharing::share_directory(&made.readable()?, &self.metadata()?)?;
                Ok(made)
            }
            Err(Errno::EXIST) => self.child(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the file `name` for reading. The result is `None` if it is something else, such as a link or a pipe, which
    /// would keep its reader waiting.
    pub(super) fn file(&self, name: &str) -> io::Result<Option<(File, Metadata)>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.0, name, flags, Mode::empty()) {
            // A link, and a socket.
            Err(Errno::LOOP | Errno::NXIO | Errno::OPNOTSUPP) => return Ok(None),
            file => File::from(file?),
        };
        let metadata = file.metadata()?;
        Ok(metadata.is_file().then_some((file, metadata)))
    }

    /// Creates the file `name`, which must not exist.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::from(0o666))?.into())
    }

    /// Gives the file `name` another name in the directory `to`.
    pub(super) fn link(&self, name: &str, to: &Self, other: &str) -> io::Result<()> {
        Ok(linkat(&self.0, name, &to.0, other, AtFlags::empty())?)
    }

    /// Removes the file `name`, or the link of this name.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes the directory `name`, which has to be empty.
    pub(super) fn remove_directory(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Returns the names in this directory that are text.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        names::all(self.readable()?.as_fd())
    }

    /// Returns the kind of what has the name `name`, which may be a link, and its size in bytes.
    pub(super) fn find(&self, name: impl AsRef<OsStr>) -> io::Result<(FileType, u64)> {
        let found = statat(&self.0, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((FileType::from_raw_mode(found.st_mode), u64::try_from(found.st_size).unwrap_or_default()))
    }

    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Makes the names in this directory durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.readable()?.sync_all()
    }

    /// Opens this directory once more, for everything that needs more than a place of names.
    pub(super) fn readable(&self) -> io::Result<File> {
        Ok(openat(&self.0, ".", OFlags::RDONLY | DIRECTORY, Mode::empty())?.into())
    }
}

fn path(root: &Path, below: &str) -> io::Result<PathBuf> {
    let path = root.join(below);
    if path.as_os_str().len() < MAX_PATH_BYTES { Ok(path) } else { Err(Errno::NAMETOOLONG.into()) }
}

/// The way to a directory: a path without links that leads to the first directory in which others may write, or else to
/// the last one that exists, and the names below it.
struct Way {
    trusted: PathBuf,
    below: Vec<OsString>,
}

impl Way {
    /// Finds the way to `path`. A link is followed where nobody else may write, and its target is resolved name by name,
    /// too: it may lead through a directory of others.
    fn to(path: &Path) -> io::Result<Self> {
        let mut trusted = PathBuf::from(if path.has_root() { "/" } else { "." });
        // The next name is the last one.
        let mut names = names_of(path);
        let (mut found, mut links, mut follows_system) = (fs::symlink_metadata(&trusted)?, 0, false);
        while is_trusted(&found)
            && let Some(name) = names.pop()
        {
            let next = trusted.join(&name);
            let Ok(metadata) = fs::symlink_metadata(&next) else {
                names.push(name);
                break;
            };
            if metadata.is_symlink() && is_of_the_system(&next) {
                (trusted, found, follows_system) = (next.clone(), fs::metadata(&next)?, true);
            } else if metadata.is_symlink() {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = fs::read_link(&next)?;
                if target.has_root() {
                    (trusted, follows_system) = (PathBuf::from("/"), false);
                }
                names.extend(names_of(&target));
                found = fs::symlink_metadata(&trusted)?;
            } else {
                // Without a link on the path, the directory above is the one before.
                let is_text = trusted.has_root() && !follows_system;
                let above = trusted.parent().filter(|_| name == ".." && is_text).map(Path::to_owned);
                trusted = above.unwrap_or(next);
                found = metadata;
            }
        }
        names.reverse();
        Ok(Self { trusted, below: names })
    }
}

/// Returns `true` for a link of the system itself, such as `/proc/42/root`, which leads elsewhere than its text says.
#[cfg(target_os = "linux")]
fn is_of_the_system(link: &Path) -> bool {
    let above = link.parent().unwrap_or(link);
    rustix::fs::statfs(above).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_of_the_system(_link: &Path) -> bool {
    false
}

/// The names on a path, the last one first.
fn names_of(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    names.map(|part| part.as_os_str().to_owned()).collect()
}

/// Returns `true` if nobody but the user of this process and root, who may do anything anyway, may write in a directory.
fn is_trusted(directory: &Metadata) -> bool {
    let is_of_others = directory.uid() != 0 && directory.uid() != geteuid().as_raw();
    directory.mode() & WRITABLE_BY_OTHERS == 0 && !is_of_others
}
