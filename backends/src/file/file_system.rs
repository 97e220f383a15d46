//! A warning about file systems that are not local.

use std::path::Path;
use std::sync::Once;

/// Warns, the first time that it is asked, if `directory` is on a file system on which two writers may win.
pub(super) fn warn_once(once: &Once, directory: &Path) {
    once.call_once(|| {
        if let Some(file_system) = name(directory) {
            tracing::warn!(
                file_system,
                directory = %directory.display(),
                "this file system is not local, so two candidates may lead at once; choose a local one, or an object store"
            );
        }
    });
}

/// Returns the name of the file system, if it is one that is not supported.
#[cfg(target_os = "linux")]
fn name(directory: &Path) -> Option<&'static str> {
    // The first write creates the directory.
    let found = directory.ancestors().find_map(|directory| rustix::fs::statfs(directory).ok())?;
    #[allow(clippy::useless_conversion, reason = "the type of the number depends on the processor")]
    let number = i64::try_from(found.f_type).ok()?;
    unsupported(number)
}

#[cfg(not(target_os = "linux"))]
fn name(_directory: &Path) -> Option<&'static str> {
    None
}

/// The numbers are listed in statfs(2).
#[cfg(target_os = "linux")]
fn unsupported(number: i64) -> Option<&'static str> {
    Some(match number {
        0x6969 => "NFS",
        0x6573_5546 => "FUSE",
        0x0102_1997 => "9p",
        0x517b => "SMB",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x0bd0_0bd0 => "Lustre",
        0x00c3_6400 => "Ceph",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_file_systems_that_are_not_local_are_named() {
        assert_eq!(unsupported(0x6969), Some("NFS"));
        assert_eq!(unsupported(0x6573_5546), Some("FUSE"));
        // ext4, XFS, Btrfs, tmpfs, overlayfs.
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(unsupported(local), None, "{local:x}");
        }
        let missing = Path::new("/proc/no such directory/nor this");
        assert_eq!(name(missing), None, "a directory need not exist");
    }
}
