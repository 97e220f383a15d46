//! Installs servers where all test processes find them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::exclusively;

/// Creates `directory/name` if need be, and returns that path. No process sees an incomplete directory.
///
/// `installer` prepares an empty directory and returns the command that fills it. The command needs `tool` and
/// `packages`.
pub(super) fn once(
    directory: &Path,
    name: &str,
    (tool, packages): (&str, &str),
    installer: impl FnOnce(&Path) -> Command,
) -> PathBuf {
    let installed = directory.join(name);
    exclusively(directory, name, || {
        if installed.exists() {
            return;
        }
        let partial = directory.join(format!("{name}.partial"));
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).expect("cannot create the directory of a test server");
        let mut installer = installer(&partial);
        let output = installer.output().unwrap_or_else(|error| {
            panic!("{name} needs {tool}; install them (`{}`: {error})", installer.get_program().display())
        });
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cannot install {name}; it needs {tool}, and {packages}\n{complaint}");
        fs::rename(&partial, &installed).expect("cannot put a test server into its place");
    });
    installed
}
