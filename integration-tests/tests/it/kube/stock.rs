//! Stock client-go beside two candidates of ours: the program of `comparison/drivers/go`, which
//! `comparison/build-drivers` builds into the folder that `LEADERELECTION_TEST_DRIVERS` names. Without it, the scripted candidate alone does what client-go does.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hyper::Method;
use leaderelection::implement::ConditionalStoreExt as _;
use leaderelection_backends::kubernetes::KubernetesLeaseLock;
use leaderelection_integration_tests::servers::unique_name;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::api::Api;
use super::ours::Ours;
use super::{LEASE, PATIENCE, RETRY};
use crate::cloud::Service as _;
use crate::cloud::kube::Kube;

const DRIVERS_VARIABLE: &str = "LEADERELECTION_TEST_DRIVERS";

/// The number of freezes after which client-go has to have released what it did not hold any more.
const ROUNDS: u64 = 20;

/// The program; says that a test is skipped if there is none.
pub(super) fn program() -> Option<String> {
    let program = std::env::var(DRIVERS_VARIABLE).ok().map(|folder| format!("{folder}/go/client-go-lease"));
    if program.is_none() {
        println!("skipped: {DRIVERS_VARIABLE} names no folder with client-go, see comparison/build-drivers");
    }
    program
}

/// A process with client-go's elector and `ReleaseOnCancel`.
pub(super) struct Stock {
    process: Child,
    _log: TempDir,
}

impl Stock {
    pub(super) fn start(program: &str, kube: &Kube, name: &str) -> Self {
        let log = tempfile::tempdir().expect("a directory");
        let millis = |duration: Duration| duration.as_millis().to_string();
        let (_, environment) = kube.url_by(&kube.address(), name);
        let mut command = Command::new(program);
        command
            .args(["--lock", name, "--identity", "theirs", "--work-ms", "20"])
            .arg("--log")
            .arg(log.path().join("log"));
        command.args([
            "--lease-ms",
            &millis(LEASE),
            "--renew-ms",
            &millis(LEASE * 2 / 3),
            "--retry-ms",
            &millis(RETRY),
        ]);
        // The process ends with its standard input, and so with this test.
        let process = command.envs(environment).stdin(Stdio::piped()).spawn().expect("the program starts");
        Self { process, _log: log }
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) async fn spec(api: &Api, name: &str) -> Value {
    api.send(Method::GET, name, &Value::Null).await.1["spec"].take()
}

/// Waits for the holder, and returns its token.
pub(super) async fn held_by(api: &Api, name: &str, holder: &str) -> u64 {
    let began = Instant::now();
    loop {
        let spec = spec(api, name).await;
        if spec["holderIdentity"] == holder {
            return spec["leaseTransitions"].as_u64().expect("a number");
        }
        assert!(began.elapsed() < PATIENCE, "{holder} does not lead: {spec}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Freezes a leader of client-go until one of ours leads, and ends it as it wakes. Returns `true` if it has emptied the
/// Lease of ours. Our leader goes on then, and our other candidate waits.
async fn freeze_and_end(program: &str, kube: &Kube, api: &Api, name: &str) -> bool {
    let theirs = Stock::start(program, kube, name);
    let token = held_by(api, name, "theirs").await;
    theirs.signal(Signal::STOP);
    let lock = |identity: &str| KubernetesLeaseLock::new(kube.lease_store(), name, identity);
    let we = Ours::start(lock("ours"));
    we.leads(token + 1).await;
    let mut other = Ours::start(lock("another"));
    other.follows("ours").await;

    theirs.signal(Signal::TERM);
    theirs.signal(Signal::CONT);
    let (began, mut is_emptied) = (Instant::now(), false);
    while began.elapsed() < RETRY * 2 {
        let spec = spec(api, name).await;
        is_emptied |= spec["holderIdentity"] == "" && spec["leaseTransitions"] == token + 1;
    }
    we.leads_on().await;
    assert!(other.terms.borrow().is_empty(), "two of ours lead: {:?}", other.terms.borrow());
    drop(theirs);
    other.end().await;
    we.release().await;
    is_emptied
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_release_of_stock_client_go_does_not_make_two_of_ours_lead() {
    let Some(program) = program() else { return };
    let (kube, name) = (Kube::new().await, unique_name());
    assert_eq!(kube.config().default_namespace, "default", "the program knows no other namespace");
    let api = Api::of(&kube);
    let mut rounds = 1;
    while !freeze_and_end(&program, &kube, &api, &name).await {
        assert!(rounds < ROUNDS, "client-go has released nothing late");
        rounds += 1;
    }
    println!("client-go has emptied the Lease in round {rounds}");
    kube.lease_store().discard(&name).await.expect("deleted");
}
