//! Servers from the npm registry, pinned by their hashes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::exclusively;

/// A `package.json` and its `package-lock.json`, which gives the hash of every package.
#[derive(Clone, Copy, Debug)]
pub struct Packages {
    /// The first.
    pub manifest: &'static str,
    /// The second.
    pub lock: &'static str,
}

/// Installs `packages` into `directory/name`, once, and returns that path. Their scripts are not run.
///
/// # Panics
///
/// If that is not possible. The message says what to install.
#[must_use]
pub fn install(directory: &Path, name: &str, packages: Packages) -> PathBuf {
    let installed = directory.join(name);
    exclusively(directory, name, || {
        if installed.exists() {
            return;
        }
        let partial = directory.join(format!("{name}.partial"));
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).expect("cannot create the directory of a test server");
        for (file, content) in [("package.json", packages.manifest), ("package-lock.json", packages.lock)] {
            fs::write(partial.join(file), content).expect("cannot write the requirements of a test server");
        }
        let output = Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"])
            .current_dir(&partial)
            .output()
            .unwrap_or_else(|error| panic!("{name} needs Node.js 20 or newer with npm; install them (`npm`: {error})"));
        assert!(
            output.status.success(),
            "cannot install {name}; it needs Node.js 20 or newer with npm, and a registry that has its packages\n{}",
            String::from_utf8_lossy(&output.stderr),
        );
        fs::rename(&partial, &installed).expect("cannot put a test server into its place");
    });
    installed
}
