//! Electors of others, as they are, on the real server: killed, frozen, and with a lost answer.
//!
//! The programs are those of the comparison, and keep the contract of `comparison/README.md`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use leaderelection_integration_tests::proxy::sign::unsigned;
use leaderelection_integration_tests::proxy::{Delivery, Fault, Proxy, Reply};
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{LEASES, lease_api, send};
use crate::serve::process::eventually;
use crate::serve::sidecar::Sidecar;
use crate::support::Place;

const PROGRAM_VARIABLE: &str = "LEADERELECTION_TEST_CLIENT_GO";

/// The timings: a lease of several seconds, which a busy machine does not lose.
const TIMINGS: [&str; 8] = ["--lease-ms", "6000", "--renew-ms", "4000", "--retry-ms", "1000", "--work-ms", "50"];

/// A candidate, which ends with this test.
pub(super) struct Candidate {
    pub(super) name: String,
    process: Child,
}

impl Candidate {
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Candidates of one kind for one Lease, and their log.
pub(super) struct Fleet {
    pub(super) place: Place,
    pub(super) program: fn() -> Option<Command>,
    pub(super) lock: String,
}

impl Fleet {
    /// Starts a candidate that knows nothing but the address of its server.
    pub(super) fn start(&self, name: &str, url: &str) -> Candidate {
        let kubeconfig = self.place.path(&format!("kubeconfig-{name}"));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a, \
             namespace: default}}}}]\nusers: [{{name: a, user: {{}}}}]\nclusters: [{{name: a, cluster: {{server: \"{url}\"}}}}]\n"
        );
        fs::write(&kubeconfig, text).unwrap();
        self.start_with(name, &kubeconfig)
    }

    pub(super) fn start_with(&self, name: &str, kubeconfig: &Path) -> Candidate {
        let mut command = (self.program)().unwrap();
        command.args(["--lock", &self.lock, "--identity", name, "--log", self.place.path("log").to_str().unwrap()]);
        command.args(TIMINGS).env("KUBECONFIG", kubeconfig).stdin(Stdio::piped());
        Candidate { name: name.to_owned(), process: command.spawn().unwrap() }
    }

    /// The names in the log of the work, in its order.
    pub(super) fn workers(&self) -> Vec<String> {
        let log = fs::read_to_string(self.place.path("log")).unwrap_or_default();
        let entries = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        entries
            .filter(|entry| matches!(entry[..], [_, _, _, "start" | "work"]))
            .map(|entry| entry[1].to_owned())
            .collect()
    }

    /// Waits until one of these works behind an entry, and returns it.
    pub(super) async fn works(&self, behind: usize, names: &[&str]) -> String {
        let found = || self.workers().into_iter().skip(behind).find(|worker| names.contains(&&**worker));
        eventually(&format!("one of {names:?} works"), async || found()).await
    }
}

async fn lease(server: &Sidecar) -> Value {
    send(server, Method::GET, &format!("{LEASES}/web"), "", &Value::Null).await.1
}

fn token(lease: &Value) -> u64 {
    lease["metadata"]["annotations"]["leaderelection/token"].as_str().unwrap().parse().unwrap()
}

/// Lets candidates lead in turn. Asserts that none works beside another, but for one that was frozen.
async fn elect(program: fn() -> Option<Command>) {
    let place = Place::new();
    let server = Sidecar::spawn(&mut lease_api(&place, "127.0.0.1:0")).await;
    let proxy = Proxy::start(server.url(), unsigned()).await;
    let fleet = Fleet { place, program, lock: "web".to_owned() };
    let mut killed = fleet.start("killed", server.url());
    fleet.works(0, &["killed"]).await;
    let first = lease(&server).await;
    // The others reach the server through a network that can lose an answer.
    let others = ["one", "two"].map(|name| fleet.start(name, &proxy.url()));
    proxy.wait_for("both wait", |traffic| traffic.len() >= 4).await;
    killed.process.kill().unwrap();
    let behind = fleet.workers().len();
    let leader = fleet.works(behind, &["one", "two"]).await;
    let second = lease(&server).await;
    assert!(token(&second) > token(&first) && second["spec"]["holderIdentity"] == leader.as_str(), "{first} {second}");

    // The write lands, and its answer does not.
    let seen = proxy.traffic().len();
    proxy.spoil(0, |request| request.method == Method::PUT, Fault::new(Delivery::Once, Reply::Cut));
    let traffic = proxy.wait_for("a renewal lands behind the loss", |traffic| {
        let puts = traffic[seen..].iter().filter(|exchange| exchange.request.method == Method::PUT);
        puts.filter(|exchange| exchange.told == Some(200)).count() > 1
    });
    traffic.await;
    let behind = fleet.workers().len();
    assert_eq!(fleet.works(behind, &["one", "two"]).await, leader, "a lost answer costs no term");
    assert_eq!(token(&lease(&server).await), token(&second));
    let workers = fleet.workers();
    let turns = workers.chunk_by(|one, other| one == other).count();
    assert_eq!(turns, 2, "one after the other: {workers:?}");

    let (frozen, other) = if leader == "one" { (&others[0], "two") } else { (&others[1], "one") };
    frozen.signal(Signal::STOP);
    fleet.works(behind, &[other]).await;
    frozen.signal(Signal::CONT);
    let third = lease(&server).await;
    assert!(token(&third) > token(&second) && third["spec"]["holderIdentity"] == other, "{third}");
    // An elector without a look at the clock works on for a moment, with its old token, and never gets the Lease back.
    proxy.wait_for("it asks", |traffic| traffic.iter().filter(|exchange| exchange.told == Some(200)).count() > 8).await;
    assert_eq!(lease(&server).await["spec"]["holderIdentity"], other, "{} came back", frozen.name);
}

pub(super) fn python() -> Option<Command> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let drivers = repository.join("comparison/drivers/python");
    let packages = Command::new(repository.join(".ci/python-packages")).arg(drivers.join("requirements.txt")).output();
    let packages = packages.unwrap();
    assert!(packages.status.success(), "{}", String::from_utf8_lossy(&packages.stderr));
    let mut command = Command::new("python3");
    command.arg(drivers.join("candidate.py"));
    command.env("PYTHONPATH", String::from_utf8(packages.stdout).unwrap().trim());
    Some(command)
}

pub(super) fn client_go() -> Option<Command> {
    std::env::var_os(PROGRAM_VARIABLE).map(Command::new)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_elector_of_the_python_client_elects_on_a_store() {
    elect(python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_elects_on_a_store() {
    if client_go().is_none() {
        return println!("skipped: {PROGRAM_VARIABLE} does not name a program of comparison/drivers/go");
    }
    elect(client_go).await;
}
