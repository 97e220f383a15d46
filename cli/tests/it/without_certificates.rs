//! A small container, in which there are no certificates of authorities.

use std::process::Command;

use rustix::process::Signal;

use crate::peers::Peer;
use crate::support::{Place, Running, end_of, leaderelect};

/// Lets a command run on such a machine.
pub(crate) fn bare(mut command: Command) -> Command {
    command.envs([("SSL_CERT_FILE", "/dev/null"), ("SSL_CERT_DIR", "/dev/null")]);
    command
}

#[test]
fn health_asks_the_sidecar() {
    let place = Place::new();
    let lock = place.lock("a");
    let mut sidecar = Running::of(bare(leaderelect([
        "serve",
        &lock,
        "--identity",
        "node-1",
        "--listen",
        "127.0.0.1:0",
        "--drain",
        "0s",
    ])));
    let url = sidecar.wait_for_note("serving http://");
    let address = url.trim_end_matches('/').rsplit('/').next().unwrap();
    let asked = end_of(bare(leaderelect(["health", "--request-timeout", "60s", "--listen", address])));
    assert_eq!(asked.code, Some(0), "{asked:?}");
    sidecar.signal(Signal::TERM);
    sidecar.wait();
}

#[test]
fn a_follower_gets_messages_without_tls() {
    let place = Place::new();
    let lock = place.lock("a");
    let start = |number: u8| Running::of(bare(Peer::new(&place, number).command(&lock, &number.to_string())));
    let mut leader = start(5);
    leader.wait_for("begun");
    let mut follower = start(6);
    follower.wait_for_note("connected to the leader");
    leader.signal(Signal::TERM);
    follower.wait_for("begun");
    follower.signal(Signal::TERM);
    leader.wait();
    follower.wait();
}

#[test]
fn a_store_on_azure_names_what_is_missing() {
    let told = |endpoint: &str| {
        let mut command = bare(leaderelect(["status", "--request-timeout", "1s", "az://account/container/a"]));
        let access = format!("AccountName=account;AccountKey=c2VjcmV0;BlobEndpoint={endpoint}/account;");
        command.env("AZURE_STORAGE_CONNECTION_STRING", access);
        end_of(command).stderr
    };
    let with_tls = told("https://127.0.0.1:1");
    assert!(with_tls.contains("install the certificates of public authorities"), "{with_tls}");
    let without = told("http://127.0.0.1:1");
    assert!(!without.contains("certificates") && !without.contains("panicked"), "{without}");
}
