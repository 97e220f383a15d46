//! Servers from the npm registry, pinned by their hashes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::install;

/// A `package.json` and its `package-lock.json`, which gives the hash of every package.
#[derive(Clone, Copy, Debug)]
pub struct Packages {
    /// The `package.json`.
    pub manifest: &'static str,
    /// The `package-lock.json`.
    pub lock: &'static str,
}

/// Installs `packages` into `directory/name`, once, and returns that path. The scripts of the packages are not
/// run.
///
/// # Panics
///
/// If the installation fails. The message names the missing program.
#[must_use]
pub fn install(directory: &Path, name: &str, packages: Packages) -> PathBuf {
    let needs = ("Node.js 20 or newer with npm", "a registry that has its packages");
    install::once(directory, name, needs, |partial| {
        for (file, content) in [("package.json", packages.manifest), ("package-lock.json", packages.lock)] {
            fs::write(partial.join(file), content).expect("cannot write the requirements of a test server");
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]).current_dir(partial);
        npm
    })
}
