//! A move from a Kubernetes Lease to a local directory and back, by three replicas that are rolled one by one.

use std::fs;
use std::path::Path;

use leaderelection_integration_tests::servers::kube_api::KubeApi;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::service::{Service, judge};
use crate::support::wait_until;
use crate::support::{Ended, Place, end, end_of, leaderelect};

const LEASE_URL: &str = "lease://default/worker";

fn status(kubeconfig: &Path, url: &str) -> Value {
    let mut command = leaderelect(["status", "-o", "json", url]);
    command.env("KUBECONFIG", kubeconfig);
    let Ended { stdout, stderr, .. } = end_of(command);
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

#[test]
fn three_replicas_move_from_a_lease_to_a_bucket_and_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let api = runtime.block_on(KubeApi::start());
    let kubeconfig = NamedTempFile::new().unwrap();
    fs::write(kubeconfig.path(), api.kubeconfig().to_string()).unwrap();
    let mut service = Service::new(vec![("KUBECONFIG", kubeconfig.path().to_owned())]);
    // Whatever led before on the Lease has left its count.
    api.plant(
        "worker",
        serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "worker", "namespace": "default"},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 41},
        }),
    );
    let bucket = service.place.lock("worker");
    let old = ["--lock", LEASE_URL];
    let both = ["--lock", &bucket, "--second-lock", LEASE_URL];
    let new = ["--lock", &bucket];
    service.roll("old", &old, |_| {});
    service.roll("both", &both, |_| {});
    // What an operator checks before the next rollout: one leader, who holds both. A busy leader may lose them
    // between the two reads.
    wait_until("one leader holds both", || {
        let [lease, record] = [LEASE_URL, &bucket].map(|url| status(kubeconfig.path(), url));
        lease["holder"].is_string()
            && (&lease["holder"], &lease["fencingToken"]) == (&record["holder"], &record["fencingToken"])
    });
    // A crash in each rollout costs one lease.
    service.roll("new", &new, Service::kill_leader);
    let there = service.entries().len();
    service.roll("both", &both, Service::kill_leader);
    service.roll("old", &old, Service::kill_leader);
    let entries = service.entries();
    judge(&entries);
    assert!(entries[0].token >= 42 && entries.len() > there, "{:?}", entries[0]);
    let phases = ["old-", "both-", "new-"].map(|phase| entries.iter().any(|entry| entry.writer.starts_with(phase)));
    assert_eq!(phases, [true; 3]);
}

#[test]
fn the_old_lock_is_not_the_new_one() {
    let place = Place::new();
    let lock = place.lock("a");
    let ended = end(&["run", "--lock", &lock, "--second-lock", &lock, "--", "true"]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("are the same lock; name each lock once"), "{ended:?}");

    let spelt_twice =
        ["run", "--lock", "s3://bucket/a", "--second-lock", "s3://bucket/a?region=eu-central-1", "--", "true"];
    let mut command = leaderelect(spelt_twice);
    command.env("AWS_REGION", "eu-central-1");
    let ended = end_of(command);
    assert_eq!(ended.code, Some(64), "{ended:?}");
}
