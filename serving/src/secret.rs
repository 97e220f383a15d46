//! Files with secrets: who may change them, and who may read them.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file with a secret. A file that every user of the machine may change is refused. A file that every user may read is
/// taken, because Kubernetes mounts secrets so, and the log has a warning.
///
/// # Errors
///
/// The error of the system, or [`PermissionDenied`](io::ErrorKind::PermissionDenied) with advice.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // A link is followed: the mode of the file counts, which is the one that was opened.
        let metadata = file.metadata()?;
        let mode = metadata.permissions().mode();
        if metadata.is_file() && mode & 0o002 != 0 {
            let problem = format!("every user can change it (mode {:o}); run chmod o-w on it", mode & 0o777);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        if metadata.is_file() && mode & 0o004 != 0 {
            let (path, mode) = (path.display().to_string(), format!("{:o}", mode & 0o777));
            tracing::warn!(path, mode, "every user of this machine can read this file; run chmod o-r on it");
        }
    }
    Ok(file)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use leaderelection_test_support::logs::warnings_of;

    use super::*;

    #[test]
    fn a_secret_that_everybody_may_change_is_refused_also_behind_a_link() {
        let path = std::env::temp_dir().join(format!("leaderelection-peers-{}.secret", std::process::id()));
        let link = path.with_extension("link");
        fs::write(&path, "secret").unwrap();
        symlink(&path, &link).unwrap();
        for (mode, is_taken) in [(0o600, true), (0o640, true), (0o644, true), (0o662, false), (0o666, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            for path in [&path, &link] {
                let (warnings, opened) = warnings_of(|| open(path));
                assert_eq!(opened.is_ok(), is_taken, "{mode:o}");
                assert_eq!(!warnings.is_empty(), mode == 0o644, "{mode:o}");
                let problem = opened.err().map(|error| error.to_string()).unwrap_or_default();
                assert!(is_taken || problem.contains(&format!("mode {mode:o}")), "{problem}");
            }
        }
        let folder = warnings_of(|| open(&std::env::temp_dir()));
        assert!(folder.0.is_empty() && folder.1.is_ok());
        fs::remove_file(link).unwrap();
        fs::remove_file(path).unwrap();
    }
}
