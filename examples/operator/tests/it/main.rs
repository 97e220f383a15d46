//! Replicas of the operator as processes, against an API server that runs in the test.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod replica;
mod role;

use std::path::Path;
use std::time::Duration;

use leaderelection_integration_tests::servers::kube_api::{Collection, KubeApi};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use replica::Replica;

const PATIENCE: Duration = Duration::from_secs(60);

/// An API server, and the directory for what the replicas read.
struct Cluster {
    api: KubeApi,
    directory: TempDir,
}

impl Cluster {
    async fn start() -> Self {
        let (api, directory) = (KubeApi::start().await, tempfile::tempdir().unwrap());
        std::fs::write(directory.path().join("kubeconfig"), api.kubeconfig().to_string()).unwrap();
        Self { api, directory }
    }

    fn replica(&self, elected_on: &str) -> Replica {
        self.replica_with(elected_on, &[])
    }

    fn replica_with(&self, elected_on: &str, options: &[&str]) -> Replica {
        Replica::start(&self.directory.path().join("kubeconfig"), elected_on, options)
    }

    /// Waits until replicas have opened so many watches.
    async fn watched(&self, watches: usize) {
        let opened = || self.api.requests().iter().filter(|request| request.contains("watch=")).count();
        let waiting = async {
            while opened() < watches {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{} watches", opened()));
    }

    fn put_original(&self, content: &str) {
        self.api
            .config_maps
            .put("settings", config_map("settings", &json!({"operator.example/copy": "true"}), content));
    }

    /// Waits until the copy has this content, written under this fencing token.
    async fn copied(&self, content: &str, token: u64) {
        let by = token.to_string();
        let is_right = |config_maps: &Collection| {
            let copy = config_maps.read("settings-copy")?;
            let written_by = &copy["metadata"]["annotations"]["operator.example/fencing-token"];
            (copy["data"]["content"] == content && *written_by == by).then_some(())
        };
        let copied = timeout(PATIENCE, self.api.config_maps.when(is_right)).await;
        copied.unwrap_or_else(|_| panic!("the copy is {:?}", self.api.config_maps.read("settings-copy")));
    }

    /// Asserts that no leader has written after a later one.
    fn judge_writes(&self) {
        let copies = self.api.config_maps.history("settings-copy");
        let token = |copy: &Value| copy["metadata"]["annotations"]["operator.example/fencing-token"].to_string();
        let tokens: Vec<_> = copies.iter().map(token).collect();
        // Each token has one digit.
        assert!(tokens.len() > 1 && tokens.is_sorted(), "{tokens:?}");
    }
}

fn config_map(name: &str, labels: &Value, content: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "default", "labels": labels});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"content": content}})
}

fn lease() -> String {
    "lease://default/operator".to_owned()
}

fn object(directory: &Path) -> String {
    format!("file://{}/lock", directory.display())
}

/// One replica after the other leads: after a stop, and after a crash.
async fn replicas_take_over(cluster: &Cluster, elected_on: &str, options: &[&str]) {
    cluster.put_original("three");
    let mut first = cluster.replica_with(elected_on, options);
    first.program.wait_for_line("leading with fencing token 1");
    cluster.copied("three", 1).await;
    cluster.put_original("four");
    cluster.copied("four", 1).await;

    let mut second = cluster.replica_with(elected_on, options);
    second.program.wait_for_line("leader: ");
    for replica in [&first, &second] {
        assert_eq!(replica.get("/healthz").await, (200, "ok".to_owned()));
        assert_eq!(replica.get("/readyz").await, (200, "ok".to_owned()));
        assert_eq!(replica.get("/elsewhere").await.0, 404);
    }
    assert_eq!(first.get("/leading").await, (200, "leading".to_owned()));
    assert_eq!(second.get("/leading").await, (503, "not leading".to_owned()));
    let (_, metrics) = first.get("/metrics").await;
    assert!(metrics.contains("leader_election_master_status{name=\"operator\"} 1"), "{metrics}");
    assert!(metrics.contains("operator_reconciliations_total{result=\"ok\"}"), "{metrics}");
    let (_, metrics) = second.get("/metrics").await;
    assert!(!metrics.contains("operator_reconciliations_total"), "a follower reconciles: {metrics}");

    first.program.terminate();
    second.program.wait_for_line("leading with fencing token 2");
    first.program.wait_for_line("the controller has stopped");
    assert!(first.program.wait().success());
    // The new leader has written its token into a copy that was right already.
    cluster.copied("four", 2).await;

    let mut third = cluster.replica(elected_on);
    third.program.wait_for_line("leader: ");
    second.program.kill();
    third.program.wait_for_line("leading with fencing token 3");
    cluster.put_original("five");
    cluster.copied("five", 3).await;
    cluster.judge_writes();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_elect_on_a_lease() {
    let cluster = Cluster::start().await;
    cluster.api.pods.put("pod-1", json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-1"}}));
    let options = ["--pod", "pod-1", "--pod-label", "operator.example/role=leader"];
    replicas_take_over(&cluster, &lease(), &options).await;
    role::is_what_was_used(&cluster.api.permissions_used());
    let is_told = |events: &Collection| {
        let all = events.all();
        let of = |what: &str| all.iter().filter(|event| event["message"].to_string().contains(what)).count();
        // The second replica was killed, and the third one leads.
        (of("became leader") == 3 && of("stopped leading: the candidate was told to stop") == 1).then_some(())
    };
    timeout(PATIENCE, cluster.api.events.when(is_told)).await.expect("the Events of all terms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_elect_on_an_object() {
    let cluster = Cluster::start().await;
    replicas_take_over(&cluster, &object(cluster.directory.path()), &["--warm-standby"]).await;
    assert_eq!(cluster.api.lease("operator"), None, "the Lease is not used");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_elect_on_both_during_a_move() {
    let cluster = Cluster::start().await;
    let both = format!("{},{}", lease(), object(cluster.directory.path()));
    replicas_take_over(&cluster, &both, &[]).await;
    assert_eq!(cluster.api.lease("operator").unwrap()["spec"]["leaseTransitions"], 3);
}

/// Both replicas of a warm standby watch from their starts on, so the second one lists nothing when it leads. The time of its
/// first reconciliation is printed. `LEADERELECTION_TEST_CONFIG_MAPS` is the number of other objects, none by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_cold_standby_lists_before_it_reconciles() {
    let others = std::env::var("LEADERELECTION_TEST_CONFIG_MAPS").map_or(0, |number| number.parse().unwrap());
    for (options, lists) in [(&[][..], true), (&["--warm-standby"], false)] {
        let cluster = Cluster::start().await;
        for number in 0..others {
            let name = format!("others-{number}");
            cluster.api.config_maps.put(&name, config_map(&name, &json!({"operator.example/copy": "true"}), "content"));
        }
        cluster.put_original("old");
        let mut first = cluster.replica_with(&lease(), options);
        first.program.wait_for_line("first reconciliation ");
        cluster.copied("old", 1).await;
        let mut second = cluster.replica_with(&lease(), options);
        second.program.wait_for_line("leader: ");
        cluster.watched(if lists { 2 } else { 4 }).await;
        cluster.put_original("changed while the second waits");
        cluster.copied("changed while the second waits", 1).await;

        let before = cluster.api.requests().len();
        first.program.terminate();
        println!("{options:?}: {}", second.program.wait_for_line("first reconciliation "));
        cluster.copied("changed while the second waits", 2).await;
        let is_listing = |request: &String| request.contains("/configmaps?") && !request.contains("watch=");
        let since = cluster.api.requests().split_off(before);
        assert_eq!(since.iter().any(is_listing), lists, "{since:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_frozen_does_not_reconcile() {
    let cluster = Cluster::start().await;
    cluster.put_original("old");
    // A warm standby goes on to watch when it wakes, and must not reconcile either.
    let mut first = cluster.replica_with(&lease(), &["--warm-standby"]);
    first.program.wait_for_line("leading with fencing token 1");
    cluster.copied("old", 1).await;
    let mut second = cluster.replica(&lease());

    first.program.freeze();
    second.program.wait_for_line("leading with fencing token 2");
    cluster.copied("old", 2).await;
    // The frozen replica finds this change in its watch when it goes on.
    cluster.put_original("new");
    cluster.copied("new", 2).await;
    first.program.resume();
    first.program.wait_for_line("the controller has stopped");
    cluster.judge_writes();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_on_an_object_steps_down_without_the_api_server() {
    let cluster = Cluster::start().await;
    cluster.put_original("new");
    // The way of the first replica to the cluster, which ends with all of its connections.
    let runtime = Runtime::new().unwrap();
    let way = runtime.spawn(KubeApi::start()).await.unwrap();
    let kubeconfig = cluster.directory.path().join("kubeconfig-of-the-first");
    std::fs::write(&kubeconfig, way.kubeconfig().to_string()).unwrap();
    let object = object(cluster.directory.path());
    let mut first = Replica::start(&kubeconfig, &object, &[]);
    first.program.wait_for_line("leading with fencing token 1");
    let mut second = cluster.replica(&object);
    second.program.wait_for_line("leader: ");

    runtime.shutdown_background();
    second.program.wait_for_line("leading with fencing token 2");
    cluster.copied("new", 2).await;
    first.program.wait_for_line("the controller has stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_map_of_somebody_else_stays_as_it_is() {
    let cluster = Cluster::start().await;
    let theirs = config_map("settings-copy", &json!({}), "theirs");
    cluster.api.config_maps.put("settings-copy", theirs);
    cluster.put_original("ours");
    let replica = cluster.replica(&lease());
    timeout(PATIENCE, async {
        while !replica.get("/metrics").await.1.contains("operator_reconciliations_total{result=\"error\"}") {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the failure is counted");
    assert_eq!(cluster.api.config_maps.read("settings-copy").unwrap()["data"]["content"], "theirs");
}
