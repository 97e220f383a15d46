//! The permissions of directories and files that several users share.
//!
//! Whoever shares a store's directory gives it to a group, with permission to write, and sets its set-group-id bit. A
//! process with the usual umask would make directories inside it in which nobody else of the group can write. So what
//! is made in a directory that its group, or everybody, may write in, is as open as that directory, whatever the
//! umask. In a directory with the sticky bit, such as `/tmp`, what users make is their own, and stays so.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use rustix::process::geteuid;

const STICKY: u32 = 0o1000;
const SET_GROUP_ID: u32 = 0o2000;

/// Opens the directory `made` to those who may write in the one above it, which has this metadata.
pub(super) fn share_directory(made: &File, above: &Metadata) -> io::Result<()> {
    share(made, shared_bits(above))
}

/// Lets those read and write `file` who may write in its directory, which has this metadata.
pub(super) fn share_file(file: &File, directory: &Metadata) -> io::Result<()> {
    share(file, shared_bits(directory) & 0o666)
}

/// Returns the permissions of a directory that are passed on to what is made in it.
fn shared_bits(directory: &Metadata) -> u32 {
    let mode = directory.mode();
    if mode & STICKY != 0 {
        return 0;
    }
    let group = if mode & 0o020 == 0 { 0 } else { mode & (SET_GROUP_ID | 0o070) };
    let others = if mode & 0o002 == 0 { 0 } else { mode & 0o007 };
    group | others
}

fn share(made: &File, shared: u32) -> io::Result<()> {
    let metadata = made.metadata()?;
    let mode = metadata.permissions().mode();
    // Another user may have put a directory of their own in the place of the one that was just made.
    if mode & shared == shared || metadata.uid() != geteuid().as_raw() {
        return Ok(());
    }
    made.set_permissions(Permissions::from_mode(mode | shared))
}
