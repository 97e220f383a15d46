//! Programs with kube or TLS of their own: their features are united with nobody's, and their lock files are their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use leaderelection_integration_tests::operators::built;
use leaderelection_integration_tests::servers::kube_api::KubeApi;
use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use leaderelection_integration_tests::servers::tls::TlsFront;
use serde_json::json;

/// The program in this folder below `operators`.
fn operator(name: &str) -> PathBuf {
    built(name, &format!("operator-{name}"))
}

/// Writes the kubeconfig of a server behind TLS into a folder.
fn kubeconfig(server: &KubeApi, front: &TlsFront, folder: &Path) -> PathBuf {
    let mut kubeconfig = server.kubeconfig();
    kubeconfig["clusters"][0]["cluster"] = json!({"server": front.url(), "certificate-authority": front.certificate()});
    let path = folder.join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).expect("a file");
    path
}

/// Runs a program to its end.
async fn output(mut program: Command) -> Output {
    tokio::task::spawn_blocking(move || program.output()).await.expect("no panic").expect("a program")
}

/// Runs a program to its end, and returns what it has printed.
async fn ran(program: Command) -> String {
    let ended = output(program).await;
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_on_three_versions_of_kube_lead_one_lease_by_their_own_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = KubeApi::start().await;
    let front = TlsFront::start(&server.url(), &["http/1.1"], directory.path()).await;
    let path = kubeconfig(&server, &front, directory.path());
    for (number, name) in (1..).zip(["kube-2", "kube-3", "kube-5"]) {
        let mut program = Command::new(operator(name));
        program.arg(name).env("KUBECONFIG", &path);
        assert_eq!(ran(program).await, format!("{name} leads with token {number}\n"));
    }
    assert!(front.connections() >= 3, "each of them has used TLS");
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_with_kube_lead_on_s3_and_choose_among_two_providers_of_tls() {
    let [directory, of_cluster] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let store = SeaweedFs::start(directory.path());
    store.create_bucket("bucket").await;
    let cluster = KubeApi::start().await;
    let store_front = TlsFront::start(&store.url(), &["http/1.1"], directory.path()).await;
    let cluster_front = TlsFront::start(&cluster.url(), &["http/1.1"], of_cluster.path()).await;
    let kubeconfig = kubeconfig(&cluster, &cluster_front, of_cluster.path());
    let program = |name: &str, words: &[&str]| {
        let ca = store_front.certificate().display();
        let mut program = Command::new(operator(name));
        program.arg(name).arg(format!("s3://bucket/locks/tls?endpoint={}&ca={ca}", store_front.url())).args(words);
        program.envs(store.environment()).env("KUBECONFIG", &kubeconfig);
        program
    };
    assert_eq!(ran(program("s3-ring", &[])).await, "leads with token 1\n");
    assert_eq!(ran(program("s3-kube", &["install"])).await, "leads with token 2\n");
    assert!(cluster_front.connections() >= 2, "each of them has asked the cluster");
    let ended = output(program("s3-kube", &[])).await;
    let message = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && message.contains("CryptoProvider::install_default()"), "{message}");
}
