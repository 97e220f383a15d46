//! Tests of each cloud's example on its test server: one process leads, and another takes over.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod four_lines;

use std::path::Path;
use std::process::Command;

use leaderelection_integration_tests::program::Program;
use leaderelection_integration_tests::servers::azurite::Azurite;
use leaderelection_integration_tests::servers::fake_gcs::{FakeGcs, Options};
use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;

/// A lease that no test outlasts, so that only a release makes way. A request is given up after 5 s.
const TIMING: [&str; 6] = [
    "--leader-elect-lease-duration",
    "1h",
    "--leader-elect-renew-deadline",
    "20s",
    "--leader-elect-retry-period",
    "400ms",
];

fn one_leads_and_another_takes_over(command: impl Fn() -> Command) {
    let start = || Program::start(command().args(TIMING));
    let mut first = start();
    first.wait_for_line("leading with fencing token 1");
    let mut second = start();
    second.wait_for("the first to be seen", |line| line.ends_with(" leads").then_some(()));
    first.terminate();
    first.wait_for_line("stopped leading");
    assert!(first.wait().success());
    second.wait_for_line("leading with fencing token 2");
    second.terminate();
    assert!(second.wait().success());
}

#[test]
fn s3() {
    let server = SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(server.create_bucket("bucket"));
    one_leads_and_another_takes_over(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_s3"));
        command.args(["bucket", "locks/example"]).envs(server.environment());
        command.env("AWS_ENDPOINT_URL", server.url()).env("AWS_REGION", "us-east-1");
        command
    });
}

#[test]
fn azure() {
    let server = Azurite::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { server.container("container").create(None).await.map(drop) }).unwrap();
    one_leads_and_another_takes_over(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_azure"));
        command.args(["container", "locks/example"]);
        command.env("AZURE_STORAGE_CONNECTION_STRING", server.connection_string());
        command
    });
}

#[test]
fn gcs() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(FakeGcs::start(Options::default()));
    one_leads_and_another_takes_over(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gcs"));
        command.args(["bucket", "locks/example"]).env("STORAGE_EMULATOR_HOST", server.url());
        command
    });
}

#[test]
fn without_an_account_of_azure_the_program_names_the_variables() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_azure"));
    command.env_remove("AZURE_STORAGE_ACCOUNT").env_remove("AZURE_STORAGE_CONNECTION_STRING");
    let output = command.args(["container", "locks/example"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING"), "{message}");
}
