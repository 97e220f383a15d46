//! The names in a directory.

use std::io;
use std::os::fd::BorrowedFd;

/// Returns the names in an open directory that are text. A directory that fits in [`BYTES`] is listed by one call of the
/// system, so that its names are those of one moment.
#[cfg(any(target_os = "android", target_os = "linux"))]
pub(super) fn all(directory: BorrowedFd<'_>) -> io::Result<Vec<String>> {
    /// Enough for two hundred generations.
    const BYTES: usize = 8 << 10;

    let mut buffer = [std::mem::MaybeUninit::uninit(); BYTES];
    let mut entries = rustix::fs::RawDir::new(directory, &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) => names.extend(name(entry.file_name())),
            // The directory was removed.
            Err(rustix::io::Errno::NOENT) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(names)
}

#[cfg(not(any(target_os = "android", target_os = "linux")))]
pub(super) fn all(directory: BorrowedFd<'_>) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        names.extend(name(entry?.file_name()));
    }
    Ok(names)
}

fn name(name: &std::ffi::CStr) -> Option<String> {
    name.to_str().ok().filter(|name| !matches!(*name, "." | "..")).map(str::to_owned)
}
