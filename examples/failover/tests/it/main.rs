//! The demonstration as a newcomer runs it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use leaderelection_integration_tests::servers::unique_name;

/// Shorter than the program's own, and long enough for a busy machine.
const TIMINGS: [&str; 6] = ["--lease", "2s", "--renew", "1300ms", "--retry", "250ms"];

fn failover(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_failover"));
    command.args(args).env_remove("RUST_LOG");
    command
}

fn run(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn assert_passes(command: Command) {
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("\nverdict: passed\n"), "{stdout}");
    assert_eq!(stderr, "");
    assert!(!stdout.contains('\x1b'), "no terminal, and yet escape codes: {stdout}");
}

#[test]
fn passes_on_the_file_store() {
    assert_passes(failover(&TIMINGS));
}

/// On SeaweedFS, or in the bucket that `LEADERELECTION_TEST_S3_URL` names.
#[test]
fn passes_on_s3() {
    let add_key = |url: &str| {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        format!("{path}/failover-{}?{query}", unique_name())
    };
    if let Ok(url) = std::env::var("LEADERELECTION_TEST_S3_URL") {
        return assert_passes(failover(&["--store", &add_key(&url)]));
    }
    let server = SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(server.create_bucket("bucket"));
    let url = add_key(&format!("s3://bucket/tests?endpoint={}", server.url()));
    let mut command = failover(&[&TIMINGS[..], &["--store", &url]].concat());
    command.envs(server.environment());
    assert_passes(command);
}

#[test]
fn wrong_arguments_are_shown_right_ones() {
    for (args, right_one) in [
        (["--store", "bucket/key"], "file:///var/tmp/demo/lock or s3://bucket/demo/lock?endpoint="),
        (["--store", "s3://bucket"], "s3://bucket/key"),
        (["--lease", "15"], "15s or 400ms"),
    ] {
        let (code, stdout, stderr) = run(failover(&args));
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(stderr.contains(right_one), "{args:?}: {stderr}");
    }
}

#[test]
fn timings_that_do_not_go_together_are_named() {
    let (code, stdout, stderr) = run(failover(&["--lease", "1s"]));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("lease_duration (1s) must be greater than renew_deadline (2s)"), "{stderr}");
    assert!(stderr.contains("--lease 15s --renew 10s --retry 2s"), "{stderr}");
}

#[test]
fn a_place_in_use_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let photo = directory.path().join("lock");
    std::fs::write(&photo, "somebody's photo").unwrap();
    let (code, stdout, stderr) = run(failover(&["--store", &format!("file://{}", photo.display())]));
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("name the lock differently"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&photo).unwrap(), "somebody's photo");
}
