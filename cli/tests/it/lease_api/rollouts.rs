//! The guide for electors in other languages, docs/migrating.md: from the Lease of a cluster to a folder in three rollouts, with
//! a fault in each. The cluster is the one of `LEADERELECTION_TEST_KUBE`, or else the tests' own API server.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use leaderelection_integration_tests::servers::kube_api::KubeApi;
use rustix::process::Signal;
use serde_json::Value;

use super::drivers::{self, Candidate, Driver, Fleet};
use super::reads;
use crate::guides::{commands, guide};
use crate::serve::process::eventually;
use crate::serve::sidecar::Sidecar;
use crate::support::{Ended, end_of, leaderelect};

const KUBECONFIG_VARIABLE: &str = "LEADERELECTION_TEST_KUBE";

/// A candidate, and the server beside it unless the candidate asks the cluster. They are killed together, as a pod is.
struct Pod {
    candidate: Candidate,
    server: Option<Sidecar>,
}

impl Pod {
    fn signal(&self, signal: Signal) {
        self.server.iter().for_each(|server| server.signal(signal));
        self.candidate.signal(signal);
    }
}

struct Service {
    fleet: Fleet,
    cluster: PathBuf,
    /// The commands of the guide for the second rollout and the third, with a folder in the place of the bucket.
    servers: [String; 2],
    _own: Option<KubeApi>,
}

impl Service {
    async fn new(fleet: Fleet) -> Self {
        let place = &fleet.place;
        let (cluster, own) = match std::env::var_os(KUBECONFIG_VARIABLE) {
            Some(path) => (path.into(), None),
            None => {
                let (own, path) = (KubeApi::start().await, place.path("cluster"));
                std::fs::write(&path, own.kubeconfig().to_string()).unwrap();
                (path, Some(own))
            }
        };
        let text = guide("docs/migrating.md");
        let (_, section) = text.split_once("\n## Electors of Leases\n").unwrap();
        let servers: Vec<_> =
            commands(section).iter().map(|command| command.replace("s3://bucket/", &place.file(""))).collect();
        let servers = servers.try_into().expect("a server for the second rollout and one for the third");
        let service = Self { fleet, cluster, servers, _own: own };
        if service.fleet.driver.needs_lease {
            let [in_cluster, _] = service.locks();
            let created = service.ask(&["run", "--no-wait", "--once", &in_cluster, "--", "true"]);
            assert_eq!(created.code, Some(0), "{}", created.stderr);
        }
        service
    }

    /// The URL of the lock in the cluster, and in the folder.
    fn locks(&self) -> [String; 2] {
        let name = &self.fleet.lock;
        [format!("lease://default/{name}"), self.fleet.place.file(&format!("leases/default/{name}"))]
    }

    fn of_cluster(&self, name: &str) -> Pod {
        Pod { candidate: self.fleet.start_with(name, &self.cluster), server: None }
    }

    /// A pod of the second rollout, or of the third.
    async fn of_folder(&self, name: &str, also: bool) -> Pod {
        let [both, alone] = &self.servers;
        let mut command = Command::new(env!("CARGO_BIN_EXE_leaderelect"));
        command.args((if also { both } else { alone }).split(' ').skip(1)).args(["--listen", "127.0.0.1:0"]);
        command.env("KUBECONFIG", &self.cluster);
        let server = Sidecar::spawn(&mut command).await;
        Pod { candidate: self.fleet.start(name, server.url()), server: Some(server) }
    }

    fn ask(&self, arguments: &[&str]) -> Ended {
        let mut command = leaderelect(arguments);
        command.env("KUBECONFIG", &self.cluster);
        end_of(command)
    }

    /// The answers of `leaderelect status` about both locks.
    fn status(&self) -> [Value; 2] {
        self.locks()
            .map(|lock| serde_json::from_str(&self.ask(&["status", "-o", "json", &lock]).stdout).unwrap_or_default())
    }

    /// Waits until both locks have the same holder and token, which is step 3 of the guide, and returns them.
    async fn is_joined(&self) -> (String, u64) {
        eventually("both locks have one holder and one token", async || {
            let [old, new] = self.status();
            let of = |status: &Value| Some((status["holder"].as_str()?.to_owned(), status["fencingToken"].as_u64()?));
            of(&old).filter(|of_old| Some(of_old) == of(&new).as_ref() && !of_old.0.is_empty())
        })
        .await
    }
}

async fn follow_the_guide(driver: Driver, lock: &str) {
    let Some(fleet) = Fleet::of(driver, &format!("{lock}-{}", std::process::id())) else { return };
    let service = Service::new(fleet).await;
    let first = service.of_cluster("cluster-1");
    service.fleet.works(&["cluster-1"]).await;
    let second = service.of_cluster("cluster-2");

    // Rollout 2. The leader of rollout 1 dies meanwhile, and its successor is told to end.
    let both_1 = service.of_folder("both-1", true).await;
    first.signal(Signal::KILL);
    let leader = service.fleet.works(&["cluster-2", "both-1"]).await;
    let both_2 = service.of_folder("both-2", true).await;
    second.signal(Signal::TERM);
    println!("behind cluster-1: {leader}");
    let leader = service.fleet.works(&["both-1", "both-2"]).await;
    let (_, token) = service.is_joined().await;
    drop((first, second));

    // A pod of rollout 2 dies with its server.
    let (dies, stays) = if leader == "both-1" { (both_1, both_2) } else { (both_2, both_1) };
    dies.signal(Signal::KILL);
    service.fleet.works(&[&stays.candidate.name]).await;
    let (holder, second_token) = service.is_joined().await;
    assert!(second_token > token, "{token} {second_token}");

    // Rollout 3, in which the leader of rollout 2 freezes, and wakes behind its lease.
    let folder_1 = service.of_folder("folder-1", false).await;
    stays.signal(Signal::STOP);
    service.fleet.works(&["folder-1"]).await;
    stays.signal(Signal::CONT);
    let [old, new] = service.status();
    assert!(old["holder"] == *holder && new["holder"] != *holder, "{old} {new}");
    let third_token = new["fencingToken"].as_u64().unwrap();
    assert!(third_token > second_token, "{second_token} {third_token}");
    // It has asked, and stays without the Lease.
    let server = stays.server.as_ref().unwrap();
    let before = reads(server).await;
    eventually("the one that was frozen asks", async || (reads(server).await > before).then_some(())).await;
    assert_eq!(service.status()[1]["fencingToken"], third_token);
    stays.signal(Signal::TERM);
    let folder_2 = service.of_folder("folder-2", false).await;
    folder_1.signal(Signal::TERM);
    service.fleet.works(&["folder-2"]).await;
    assert!(service.status()[1]["fencingToken"].as_u64() > Some(third_token));
    let frozen = stays.candidate.name.clone();
    drop((stays, folder_1, folder_2));

    // Everybody's work is one piece, but for the one that was frozen: an elector without a poll at the clock works on.
    let turns: Vec<_> = service.fleet.turns().into_iter().filter(|worker| *worker != frozen).collect();
    let workers: BTreeSet<_> = turns.iter().collect();
    assert!(turns.chunk_by(|one, other| one == other).count() == workers.len(), "{turns:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_elector_of_the_python_client_moves_from_a_cluster_to_a_folder() {
    follow_the_guide(drivers::PYTHON, "python").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_moves_from_a_cluster_to_a_folder() {
    follow_the_guide(drivers::CLIENT_GO, "go").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fabric8_moves_from_a_cluster_to_a_folder() {
    follow_the_guide(drivers::FABRIC8, "fabric8").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn javas_official_client_moves_from_a_cluster_to_a_folder() {
    follow_the_guide(drivers::JAVA, "java").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controller_runtime_moves_from_a_cluster_to_a_folder() {
    follow_the_guide(drivers::CONTROLLER_RUNTIME, "controller-runtime").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubert_moves_from_a_cluster_to_a_folder() {
    follow_the_guide(drivers::KUBERT, "kubert").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_leader_election_moves_from_a_cluster_to_a_folder() {
    follow_the_guide(drivers::KUBE_LEADER_ELECTION, "kube-leader-election").await;
}
