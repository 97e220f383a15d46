//! The permissions of directories and files that several users share.
//!
//! Whoever shares a store's directory gives it to a group, with permission to write, and sets its set-group-id bit. A
//! process with the usual umask would make directories inside it in which nobody else of the group can write. So what
//! is made in a directory that its group, or everybody, may write in, is as open as that directory, whatever the
//! umask. In a directory with the sticky bit, such as `/tmp`, what users make is their own, and stays so.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::crash;

const STICKY: u32 = 0o1000;
const SET_GROUP_ID: u32 = 0o2000;

/// The number of times that a directory is made while others remove it because it is empty.
const ATTEMPTS: usize = 100;

/// Creates `directory`, below `root`, with those above it that are missing.
pub(super) fn create_directories(root: &Path, directory: &Path) -> io::Result<()> {
    let parent = directory.parent().filter(|_| directory != root && directory.starts_with(root));
    let Some(parent) = parent else { return fs::create_dir_all(directory) };
    for _ in 0..ATTEMPTS {
        match fs::create_dir(directory) {
            Ok(()) => {
                crash::point();
                let shared = shared_bits(parent)?;
                return open(directory, fs::metadata(directory)?.permissions(), shared);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => create_directories(root, parent)?,
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::NotFound.into())
}

/// Lets those read and write `file` who may write in `directory`, where the file is.
pub(super) fn share(file: &File, directory: &Path) -> io::Result<()> {
    let shared = shared_bits(directory)? & 0o666;
    let mode = file.metadata()?.permissions().mode();
    if mode & shared == shared { Ok(()) } else { file.set_permissions(Permissions::from_mode(mode | shared)) }
}

/// Returns the permissions of `directory` that are passed on to what is made in it.
fn shared_bits(directory: &Path) -> io::Result<u32> {
    let mode = fs::metadata(directory)?.permissions().mode();
    if mode & STICKY != 0 {
        return Ok(0);
    }
    let group = if mode & 0o020 == 0 { 0 } else { mode & (SET_GROUP_ID | 0o070) };
    let others = if mode & 0o002 == 0 { 0 } else { mode & 0o007 };
    Ok(group | others)
}

fn open(path: &Path, permissions: Permissions, shared: u32) -> io::Result<()> {
    let mode = permissions.mode();
    if mode & shared == shared { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(mode | shared)) }
}
