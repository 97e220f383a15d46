//! Programs with kube or TLS of their own: their features are united with nobody's, and their lock files are their own.

use std::path::Path;
use std::process::Command;

use leaderelection_integration_tests::operators::built;
use leaderelection_integration_tests::servers::kube_api::KubeApi;
use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use leaderelection_integration_tests::servers::tls::TlsFront;
use serde_json::json;

/// Runs a program to its end, and returns what it has printed.
async fn ran(mut program: Command) -> String {
    let ended = tokio::task::spawn_blocking(move || program.output()).await.expect("no panic").expect("a program");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_on_three_versions_of_kube_lead_one_lease_by_their_own_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = KubeApi::start().await;
    let front = TlsFront::start(&server.url(), &["http/1.1"], directory.path()).await;
    let mut kubeconfig = server.kubeconfig();
    kubeconfig["clusters"][0]["cluster"] = json!({"server": front.url(), "certificate-authority": front.certificate()});
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).expect("a file");
    for (number, name) in (1..).zip(["kube-2", "kube-3", "kube-5"]) {
        let mut program = Command::new(built(name, &format!("operator-{name}")));
        program.arg(name).env("KUBECONFIG", &path);
        assert_eq!(ran(program).await, format!("{name} leads with token {number}\n"));
    }
    assert!(front.connections() >= 3, "each of them has used TLS");
}

#[tokio::test]
async fn a_program_leads_on_s3_with_ring_as_its_only_provider_of_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = SeaweedFs::start(directory.path());
    server.create_bucket("bucket").await;
    let front = TlsFront::start(&server.url(), &["http/1.1"], directory.path()).await;
    let name = "s3-ring";
    let mut program = Command::new(built(name, &format!("operator-{name}")));
    let ca = front.certificate().display();
    program.arg(format!("s3://bucket/locks/ring?endpoint={}&ca={ca}", front.url())).envs(server.environment());
    assert_eq!(ran(program).await, format!("{name} leads with token 1\n"));
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("operators").join(name).join("Cargo.lock");
    let lock = std::fs::read_to_string(lock).expect("a lock file");
    assert!(lock.contains("name = \"ring\"") && !lock.contains("name = \"aws-lc-rs\""));
}
