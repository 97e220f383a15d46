//! The meaning of the operating system's errors for a caller.

use std::fmt::Display;
use std::io::{self, ErrorKind};

use leaderelection::{StoreError, StoreErrorKind};
use rustix::io::Errno;

/// An error of a read, or of a write before its publication: nothing changed.
pub(super) fn refused(action: &str, object: &str, error: io::Error) -> StoreError {
    let (kind, advice) = classify(&error);
    StoreError::new(kind, format!("cannot {action} {object}: {advice}")).with_source(error)
}

/// An error that leaves open whether the write is there, or will be there after a power failure.
pub(super) fn ambiguous(object: &str, what: impl Display, error: io::Error) -> StoreError {
    let message = format!("cannot tell whether the write to {object} will last: {what}; read it again");
    StoreError::new(StoreErrorKind::Ambiguous, message).with_source(error)
}

pub(super) fn conflict(object: &str, found: impl Display) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, format!("{object} changed: {found}"))
}

/// Returns `true` if a failed `link` certainly had no effect.
pub(super) fn is_refusal_to_link(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::CrossesDevices
            | ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::StorageFull
            | ErrorKind::TooManyLinks
            | ErrorKind::Unsupported
    )
}

fn classify(error: &io::Error) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Fatal, Rejected};

    match error.kind() {
        ErrorKind::StorageFull => (Rejected, "the file system is full: free some space"),
        ErrorKind::QuotaExceeded => (Rejected, "the quota is used up: raise it or free some space"),
        ErrorKind::FileTooLarge => (Rejected, "the process may not write files of this size: raise its limit"),
        _ if matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE)) => {
            (Rejected, "too many files are open: raise the limit (ulimit -n)")
        }
        ErrorKind::PermissionDenied => (Fatal, "permission denied: let this process read and write the directory"),
        ErrorKind::ReadOnlyFilesystem => {
            (Fatal, "the file system is read-only: choose another or mount it for writing")
        }
        _ if Errno::from_io_error(error) == Some(Errno::LOOP) => {
            (Fatal, "a part of the path is a symbolic link, which others can replace: put a directory in its place")
        }
        ErrorKind::NotADirectory => (Fatal, "a directory of the path is a file: put the directory back"),
        ErrorKind::InvalidFilename => (Fatal, "the path is too long or not allowed here: choose another name"),
        ErrorKind::Unsupported | ErrorKind::CrossesDevices => {
            (Fatal, "the file system has no hard links: choose a local one")
        }
        ErrorKind::NotFound => {
            (Rejected, "its directory was removed, or cannot be created: check the path; a later request may succeed")
        }
        _ => (Rejected, "nothing was changed, and a later request may succeed: check the file system"),
    }
}

// The numbers in these tests are those of Linux.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Simulates errors that a test cannot cause everywhere: a full disk needs the permission to mount one.
    #[test]
    fn every_refusal_has_its_kind_and_its_advice() {
        for (errno, kind, advice) in [
            (28, StoreErrorKind::Rejected, "free some space"),
            (122, StoreErrorKind::Rejected, "raise it or free some space"),
            (27, StoreErrorKind::Rejected, "raise its limit"),
            (24, StoreErrorKind::Rejected, "ulimit -n"),
            (23, StoreErrorKind::Rejected, "ulimit -n"),
            (5, StoreErrorKind::Rejected, "check the file system"),
            (2, StoreErrorKind::Rejected, "check the path"),
            (13, StoreErrorKind::Fatal, "let this process read and write"),
            (1, StoreErrorKind::Fatal, "let this process read and write"),
            (30, StoreErrorKind::Fatal, "mount it for writing"),
            (20, StoreErrorKind::Fatal, "put the directory back"),
            (40, StoreErrorKind::Fatal, "a symbolic link"),
            (36, StoreErrorKind::Fatal, "choose another name"),
            (18, StoreErrorKind::Fatal, "choose a local one"),
            (95, StoreErrorKind::Fatal, "choose a local one"),
        ] {
            let error = refused("write", "file:///lock", io::Error::from_raw_os_error(errno));
            assert_eq!(error.kind(), kind, "errno {errno}");
            let message = error.to_string();
            assert!(
                message.starts_with("cannot write file:///lock: ") && message.contains(advice),
                "{errno}: {message}"
            );
        }
    }

    #[test]
    fn a_link_that_failed_for_another_reason_may_have_been_made() {
        let [full, io_error] = [28, 5].map(io::Error::from_raw_os_error);
        assert!(is_refusal_to_link(&full));
        assert!(!is_refusal_to_link(&io_error));
    }
}
