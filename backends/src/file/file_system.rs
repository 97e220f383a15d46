//! A warning about file systems that do not carry a lock of several candidates.

use std::path::Path;
use std::sync::Once;

/// Warns, the first time that it is asked, if candidates who share `directory` may all lead.
pub(super) fn warn_once(once: &Once, directory: &Path) {
    once.call_once(|| match found(directory) {
        None => {}
        Some(FileSystem::OfAContainer) => tracing::warn!(
            file_system = "overlayfs",
            directory = %directory.display(),
            "this file system is that of one container, so a candidate in another container has another lock, and both lead; \
             mount a volume for the directory, or choose an object store"
        ),
        Some(FileSystem::NotLocal(file_system)) => tracing::warn!(
            file_system,
            directory = %directory.display(),
            "this file system is not local, so two candidates may lead at once; choose a local one, or an object store"
        ),
    });
}

/// A file system that carries no lock of several candidates.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "they are told apart on Linux"))]
#[derive(Debug, PartialEq, Eq)]
enum FileSystem {
    NotLocal(&'static str),
    OfAContainer,
}

/// Returns the file system, if it is one that is not supported.
#[cfg(target_os = "linux")]
fn found(directory: &Path) -> Option<FileSystem> {
    use std::os::unix::fs::MetadataExt as _;

    // The first write creates the directory.
    let directory = directory.ancestors().find(|directory| directory.exists())?;
    let found = rustix::fs::statfs(directory).ok()?;
    #[allow(clippy::useless_conversion, reason = "the type of the number depends on the processor")]
    let number = i64::try_from(found.f_type).ok()?;
    // A volume is another device than the root of its container.
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    unsupported(number, device(directory) == device(Path::new("/")))
}

#[cfg(not(target_os = "linux"))]
fn found(_directory: &Path) -> Option<FileSystem> {
    None
}

/// The numbers are listed in statfs(2).
#[cfg(target_os = "linux")]
fn unsupported(number: i64, is_root: bool) -> Option<FileSystem> {
    let name = match number {
        0x6969 => "NFS",
        0x6573_5546 => "FUSE",
        0x0102_1997 => "9p",
        0x517b => "SMB",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x0bd0_0bd0 => "Lustre",
        0x00c3_6400 => "Ceph",
        0x794c_7630 if is_root => return Some(FileSystem::OfAContainer),
        _ => return None,
    };
    Some(FileSystem::NotLocal(name))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn file_systems_on_which_two_may_lead_are_named() {
        assert_eq!(unsupported(0x6969, false), Some(FileSystem::NotLocal("NFS")));
        assert_eq!(unsupported(0x6573_5546, true), Some(FileSystem::NotLocal("FUSE")));
        // ext4, XFS, Btrfs, tmpfs.
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994] {
            assert_eq!(unsupported(local, true), None, "{local:x}");
        }
        assert_eq!(unsupported(0x794c_7630, true), Some(FileSystem::OfAContainer));
        assert_eq!(unsupported(0x794c_7630, false), None, "a volume on such a file system of the host");
        let missing = Path::new("/proc/no such directory/nor this");
        assert_eq!(found(missing), None, "a directory need not exist");
    }
}
