//! Finds out what `leaderelect --version` says: the commit, and the features that are built in.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The variable with the commit, for builds that do not see the repository.
const COMMIT: &str = "LEADERELECT_COMMIT";

/// The length of a commit's name as people write it.
const SHORT: usize = 12;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={COMMIT}");
    let commit = env::var(COMMIT).ok().filter(|commit| !commit.is_empty()).or_else(of_package).or_else(of_repository);
    let commit: String = commit.unwrap_or_else(|| "unknown".to_owned()).chars().take(SHORT).collect();
    let has = |feature: &&str| {
        let variable = format!("CARGO_FEATURE_{}", feature.to_uppercase().replace('-', "_"));
        env::var_os(variable).is_some()
    };
    let features = ["azure", "gcs", "kubernetes", "lease-api", "opendal", "s3"];
    let features: Vec<_> = features.into_iter().filter(has).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo:rustc-env=BUILT_COMMIT={commit}");
    println!("cargo:rustc-env=BUILT_FEATURES={features}");
    println!("cargo:rustc-env=BUILT_VERSION={version} (commit {commit}; features: {features})");
}

/// The commit that cargo has written into a package.
fn of_package() -> Option<String> {
    let info = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = info.split_once("\"sha1\": \"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// The commit that is checked out, if this is the project's own repository.
fn of_repository() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // A package may lie in the repository of somebody else.
    let is_ours = fs::canonicalize("..").ok()? == fs::canonicalize(git(&["rev-parse", "--show-toplevel"])?).ok()?;
    let commit = git(&["rev-parse", "HEAD"]).filter(|_| is_ours)?;
    // This file changes with every commit and every checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists());
    if let Some(log) = log {
        println!("cargo:rerun-if-changed={log}");
    }
    Some(commit)
}
