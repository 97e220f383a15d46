//! Tokens from the command that a kubeconfig names for the user.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use kube::Config;
use leaderelection::StoreErrorKind;
use leaderelection::implement::ConditionalStore as _;
use leaderelection_backends::kubernetes::LeaseStore;
use leaderelection_integration_tests::servers::scripted::ScriptedServer;
use serde_json::{from_value, json};
use tempfile::tempdir;
use tokio::time::Instant;

use super::PATIENCE;

const SECRET: &str = "a-secret-of-the-command";

/// A configuration whose user has a command: a script for the shell.
fn config(url: &str, script: &Path) -> Config {
    let mut config = Config::new(url.parse().expect("the URL of a server"));
    let environment = json!([{"name": "ACCESS_KEY", "value": SECRET}]);
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": [script], "env": environment,
        "interactiveMode": "Never",
    });
    config.auth_info = from_value(json!({"exec": exec})).expect("a user");
    config
}

#[tokio::test]
async fn a_slow_token_is_fetched_once_and_reaches_the_server() {
    let (directory, server) = (tempdir().expect("a directory"), ScriptedServer::start([]).await);
    let path = |name: &str| directory.path().join(name);
    let (script, runs, pipe) = (path("script"), path("runs"), path("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    // The token comes when somebody opens the pipe.
    let credential = r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": "#;
    let text = format!(
        "cd {}
        echo >> runs; cat pipe
        echo '{credential}{{\"token\": \"opaque\", \"expirationTimestamp\": \"2099-01-01T00:00:00Z\"}}}}'",
        directory.path().display()
    );
    fs::write(&script, text).expect("a script");
    let store = LeaseStore::new(config(&server.url(), &script), "default").expect("a store");
    let store = store.with_request_timeout(Duration::from_millis(100));
    for _ in 0..3 {
        let error = store.get("a").await.expect_err("no token");
        let told = error.to_string();
        assert!(told.contains("the credentials were not loaded within 100ms"), "{told}");
        assert!(told.contains("check the command that the kubeconfig names for the user"), "{told}");
    }
    let opened = tokio::task::spawn_blocking(move || fs::write(pipe, ""));
    let start = Instant::now();
    while server.requests().is_empty() {
        assert!(start.elapsed() < PATIENCE, "no request has a token");
        let _ = store.get("a").await;
    }
    opened.await.expect("an end").expect("a reader");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer opaque"));
    assert_eq!(fs::read_to_string(runs).expect("runs").lines().count(), 1, "each request runs the command");
}

#[tokio::test]
async fn a_command_that_fails_is_told_without_its_environment() {
    let directory = tempdir().expect("a directory");
    let script = directory.path().join("script");
    for (text, told) in
        [("exit 7", "has failed (exit status: 7)"), ("echo '{\"token\": '$ACCESS_KEY", "ExecCredential")]
    {
        fs::write(&script, text).expect("a script");
        let store = LeaseStore::new(config("http://127.0.0.1:1", &script), "default").expect("a store");
        let error = store.get("a").await.expect_err("no token");
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        let error = leaderelection::causes::with_causes(&error);
        assert!(error.contains(told) && !error.contains(SECRET), "{error}");
    }
}
