//! The programs below `operators`, which have dependencies and a lock file of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a program of the package in this folder.
///
/// # Panics
///
/// If it does not compile.
#[must_use]
pub fn built(folder: &str, program: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = root.join("../target/operators");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Other tests hold elections at the same time, which a compiler on each processor would delay.
    let mut build = Command::new("nice");
    build.args(["-n", "15"]).arg(cargo).args(["build", "--locked", "--bin", program, "--manifest-path"]);
    build.arg(root.join("operators").join(folder).join("Cargo.toml"));
    // Less to write.
    build.arg("--target-dir").arg(&target).envs([("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "false")]);
    let ended = build.output().expect("cargo");
    assert!(ended.status.success(), "{folder}: {}", String::from_utf8_lossy(&ended.stderr));
    target.join("debug").join(program)
}
