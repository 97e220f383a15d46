//! The requests that the sidecar refuses, and the messages about them.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::Command;

use super::careless_s3::CarelessS3;
use super::process::Process;
use super::sidecar::{lock_in, serve, serve_at};

/// Runs it to its end, which comes by itself.
async fn fails(command: &mut Command) -> (Option<i32>, String) {
    let mut process = Process::spawn(command);
    (process.ended().await.code(), process.said())
}

#[tokio::test]
async fn what_cannot_be_right_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let token = file("token", "0123456789abcdef0123456789abcdef\n");
    let short = file("short", "short-secret");
    let empty = file("empty", "\n");
    let junk = file("junk", "this is no PEM, and secret");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let cases: &[(&[&str], i32, &[&str])] = &[
        (
            &["--listen", "0.0.0.0:0"],
            64,
            &["reachable from other machines", "--tls-cert", "--token-file", "--insecure"],
        ),
        (&["--listen", "[::]:0"], 64, &["reachable from other machines"]),
        (&["--listen", "0.0.0.0:0", "--token-file", &token], 64, &["add --tls-cert and --tls-key, or"]),
        (&["--listen", "nothing"], 64, &["--listen", "such as 127.0.0.1:4040"]),
        (&["--listen", &taken], 74, &["cannot listen on 127.0.0.1:", "stop the process that uses it"]),
        (&["--token-file", "/nowhere/token"], 64, &["/nowhere/token", "--token-file"]),
        (&["--token-file", &short], 64, &["too short to be safe", "openssl rand"]),
        (&["--token-file", &empty], 64, &["--token-file", "is empty", "openssl rand"]),
        (&["--tls-cert", &junk], 64, &["--tls-key"]),
        (&["--tls-cert", &junk, "--tls-key", &junk], 64, &["no matching PEM block found", "--tls-cert"]),
        (&["--tls-cert", "/nowhere/cert", "--tls-key", &junk], 64, &["/nowhere/cert", "--tls-cert"]),
        (&["--renew-deadline", "15s"], 64, &["--renew-deadline (15s)", "set --lease-duration"]),
    ];
    for (args, code, words) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leaderelect"));
        command.args(["serve", "--lock", &lock_in(directory.path())]).args(*args);
        let (found, said) = fails(command.env_remove("LEADERELECTION_HTTP_TOKEN").env_remove("RUST_LOG")).await;
        assert_eq!(found, Some(*code), "{args:?}: {said}");
        for word in *words {
            assert!(said.contains(word), "{args:?} does not say {word:?}: {said}");
        }
        assert!(!said.contains("secret"), "{args:?} shows what is in a file: {said}");
    }
    let empty = fails(serve(&lock_in(directory.path()), "alpha").env("LEADERELECTION_HTTP_TOKEN", "")).await;
    assert_eq!(empty.0, Some(64), "an empty token is no token: {}", empty.1);
}

#[tokio::test]
async fn the_sidecar_does_not_end_with_a_standard_input_that_is_its_socket() {
    let (directory, socket) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let mut command = serve_at("stdin", &lock_in(directory.path()), "alpha");
    command.arg("--exit-on-stdin-eof").stdin(OwnedFd::from(socket));
    let (code, said) = fails(&mut command).await;
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("--listen stdin"), "{said}");
}

#[tokio::test]
async fn an_unfit_store_elects_nobody() {
    let store = CarelessS3::start().await;
    let mut command =
        serve(&format!("s3://bucket/lock?region=eu-central-1&path_style=true&endpoint={}", store.url()), "a");
    command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "key").arg("--require-probe");
    let (code, said) = fails(&mut command).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the store failed the probe") && said.contains("use another store"), "{said}");
}
