//! The operators of `docs/any-language.md`: they work on a cluster, and elect on a store.

use std::process::{Child, Command, Stdio};

use leaderelection_integration_tests::servers::kube_api::{Collection, KubeApi};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{drivers, lease_api, reads};
use crate::serve::process::{PATIENCE, eventually};
use crate::serve::sidecar::Sidecar;
use crate::support::Place;

/// A replica of an operator, and the server of Leases beside it. They end together, as a pod does.
struct Pod {
    operator: Child,
    leases: Sidecar,
}

impl Pod {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.operator), signal).unwrap();
    }

    /// Waits until the replica competes.
    async fn competes(&self) {
        eventually("the replica asks for the Lease", async || (reads(&self.leases).await > 1).then_some(())).await;
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.operator.kill();
        let _ = self.operator.wait();
    }
}

/// A cluster, and a folder in the place of a bucket.
struct Cluster {
    api: KubeApi,
    place: Place,
    program: fn() -> Option<Command>,
}

impl Cluster {
    async fn start(program: fn() -> Option<Command>) -> Self {
        let (api, place) = (KubeApi::start().await, Place::new());
        std::fs::write(place.path("kubeconfig"), api.kubeconfig().to_string()).unwrap();
        Self { api, place, program }
    }

    async fn start_pod(&self, name: &str) -> Pod {
        let leases = Sidecar::spawn(&mut lease_api(&self.place.file("leases"), "127.0.0.1:0")).await;
        let mut command = (self.program)().unwrap();
        command.env("KUBECONFIG", self.place.path("kubeconfig")).env("LEASES", leases.url()).env("POD_NAME", name);
        Pod { operator: command.stdin(Stdio::null()).spawn().unwrap(), leases }
    }

    /// Asks for a poll, and returns the name of the replica that has read.
    async fn seen(&self, look: &str) -> String {
        let metadata = json!({"name": "settings", "labels": {"operator.example/see": look}});
        self.api.config_maps.put("settings", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
        let seen = |config_maps: &Collection| {
            let annotations = config_maps.read("settings")?["metadata"]["annotations"].clone();
            (annotations["operator.example/seen"] == look).then(|| seen_by(&annotations))
        };
        timeout(PATIENCE, self.api.config_maps.when(seen)).await.unwrap_or_else(|_| panic!("nobody looks: {look}"))
    }
}

fn seen_by(annotations: &Value) -> String {
    annotations["operator.example/seen-by"].as_str().unwrap().to_owned()
}

async fn operate(program: fn() -> Option<Command>) {
    if program().is_none() {
        return println!("skipped: no operator, see comparison/build-drivers");
    }
    let cluster = Cluster::start(program).await;
    let first = cluster.start_pod("first").await;
    assert_eq!(cluster.seen("a").await, "first");
    let mut second = cluster.start_pod("second").await;
    second.competes().await;
    assert_eq!(cluster.seen("b").await, "first", "the other one waits");
    first.signal(Signal::KILL);
    drop(first);
    assert_eq!(cluster.seen("c").await, "second");
    let third = cluster.start_pod("third").await;
    third.competes().await;
    assert_eq!(cluster.seen("d").await, "second", "the other one waits");
    second.signal(Signal::TERM);
    eventually("the second has ended", async || second.operator.try_wait().unwrap()).await;
    assert_eq!(cluster.seen("e").await, "third");
    let history = cluster.api.config_maps.history("settings");
    let annotations = history.iter().map(|state| &state["metadata"]["annotations"]);
    let writers: Vec<_> = annotations.filter(|annotations| annotations.is_object()).map(seen_by).collect();
    assert_eq!(writers, ["first", "first", "second", "second", "third"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_on_controller_runtime_operates_on_one_of_two_replicas() {
    operate(|| drivers::file("go/operator").map(Command::new)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_on_fabric8_operates_on_one_of_two_replicas() {
    operate(|| drivers::java("comparison.Operator")).await;
}
