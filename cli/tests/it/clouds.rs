//! The commands on the protocols of Azure, Google, Kubernetes and Alibaba OSS.

use std::path::Path;
use std::process::Command;

use leaderelection_integration_tests::servers::azurite::Azurite;
use leaderelection_integration_tests::servers::fake_gcs::{FakeGcs, Options};
use leaderelection_integration_tests::servers::kube_api::KubeApi;
use leaderelection_integration_tests::servers::oss::Oss;
use leaderelection_integration_tests::servers::tls::TlsFront;
use serde_json::Value;

use crate::support::{Ended, Running, end_of, leaderelect, run};

/// A leader that writes more often leaves a busy server no time for the write of an operator.
const TIMINGS: [&str; 6] = ["--lease-duration", "60s", "--renew-deadline", "40s", "--retry-period", "2s"];

/// Everything but the probe, which writes more often than a server with a limit lets it.
fn run_status_list_and_transfer(prefix: &str, secret: Option<&str>, with_access: impl Fn(Command) -> Command) {
    with_parameters(prefix, "", secret, with_access);
}

/// The same on URLs with parameters, which begin with a question mark.
fn with_parameters(prefix: &str, query: &str, secret: Option<&str>, with_access: impl Fn(Command) -> Command) {
    let lock = format!("{prefix}a{query}");
    let end = |args: &[&str]| -> Ended { end_of(with_access(leaderelect(args))) };
    let options = [&TIMINGS[..], &["--identity", "node-1"]].concat();
    let work = ["sh", "-c", "echo $LEADERELECTION_LOCK $LEADERELECTION_FENCING_TOKEN; exec sleep 1000"];
    let mut leader = Running::of(with_access(leaderelect(run(&lock, &options, &work))));
    assert_eq!(leader.wait_for(""), format!("{lock} 1"));

    let status: Value = serde_json::from_str(&end(&["status", "-o", "json", &lock]).stdout).unwrap();
    assert_eq!((&status["holder"], &status["fencingToken"]), (&"node-1".into(), &1.into()), "{status}");
    let listed = end(&["list", &format!("{prefix}{query}")]);
    assert!(listed.stdout.contains("node-1"), "{listed:?}");
    let transferred = end(&["transfer", "--yes", "--to", "node-2", &lock]);
    assert_eq!(transferred.code, Some(0), "{transferred:?}");
    // The leader ends its command and makes way.
    let left = leader.end();
    assert_eq!(left.code, Some(79), "{left:?}");
    let options = [&TIMINGS[..], &["--identity", "node-2"]].concat();
    let next = end(&run(&lock, &options, &["sh", "-c", "echo $LEADERELECTION_FENCING_TOKEN"]));
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "2\n"), "{next:?}");
    for Ended { stdout, stderr, .. } in [listed, transferred, left, next] {
        assert!(secret.is_none_or(|secret| !stdout.contains(secret) && !stderr.contains(secret)));
    }
}

#[test]
fn on_azure() {
    let server = Azurite::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { server.container("container").create(None).await.map(drop) }).unwrap();
    let (account, key) = server.account_key();
    run_status_list_and_transfer(&format!("az://{account}/container/locks/"), Some(key), |mut command| {
        command.env("AZURE_STORAGE_CONNECTION_STRING", server.connection_string());
        command
    });
}

#[test]
fn on_gcs() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(FakeGcs::start(Options::default()));
    run_status_list_and_transfer("gs://bucket/locks/", None, |mut command| {
        command.env("STORAGE_EMULATOR_HOST", server.url());
        command
    });
}

fn kubeconfig(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn on_kubernetes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(KubeApi::start());
    let kubeconfig = kubeconfig(&server.kubeconfig().to_string());
    run_status_list_and_transfer("lease://default/locks-", None, |mut command| {
        command.env("KUBECONFIG", kubeconfig.path());
        command
    });
}

/// Slots cannot be on Leases, and a poll for them would list all Leases of the namespace.
#[test]
fn the_status_of_a_lease_that_does_not_exist_is_one_request() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(KubeApi::start());
    let kubeconfig = kubeconfig(&server.kubeconfig().to_string());
    let mut command = leaderelect(["status", "lease://default/a"]);
    command.env("KUBECONFIG", kubeconfig.path());
    let told = end_of(command);
    assert!(told.code == Some(0) && told.stdout.contains("the object does not exist"), "{told:?}");
    assert_eq!(server.requests().len(), 1, "{:?}", server.requests());
}

/// The message names the place of the mistake, and quotes no line of the file.
#[test]
fn an_invalid_kubeconfig_is_not_quoted() {
    let secret = "a-secret-token";
    for mistake in ["  token", "    exec: 1", "    client-certificate-data: \"1"] {
        let text = format!("kind: Config\nusers:\n- name: a\n  user:\n    token: {secret}\n{mistake}\n");
        let kubeconfig = kubeconfig(&text);
        let mut command = leaderelect(["status", "lease://default/a"]);
        command.env("KUBECONFIG", kubeconfig.path());
        let told = end_of(command);
        assert!(told.stderr.contains("the kubeconfig is invalid in line "), "{told:?}");
        assert!(!told.stderr.contains(secret), "{told:?}");
    }
}

#[test]
fn a_proxy_is_not_quoted_and_not_asked_about_a_cluster_that_needs_none() {
    let secret = "a-secret-password";
    let cluster = r#"[{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}]"#;
    let context = r#"[{"name": "a", "context": {"cluster": "a", "user": ""}}]"#;
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    let text = format!(r#"{{"current-context": "a", "clusters": {cluster}, "contexts": {context}}}"#);
    std::fs::write(kubeconfig.path(), text).unwrap();
    for (excluded, told) in [
        ("", "begins with neither http:// nor https://"),
        ("127.0.0.1", "cannot connect"),
        ("*", "cannot connect"),
        ("a, 127.0.0.1:1", "cannot connect"),
    ] {
        let mut command = leaderelect(["status", "lease://default/a"]);
        command.env("KUBECONFIG", kubeconfig.path()).env("NO_PROXY", excluded);
        command.env("HTTPS_PROXY", format!("socks5://user:{secret}@127.0.0.1:2"));
        let ended = end_of(command);
        assert!(ended.stderr.contains(told) && !ended.stderr.contains(secret), "{excluded}: {ended:?}");
    }
}

/// The endpoint is in the environment first, and in the URL then.
#[cfg(feature = "all-tests")]
#[test]
fn on_oss() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Oss::start());
    let secret = "a-secret-of-oss";
    let with_access = |mut command: Command| {
        command.envs([("ALIBABA_CLOUD_ACCESS_KEY_ID", "key"), ("ALIBABA_CLOUD_ACCESS_KEY_SECRET", secret)]);
        command
    };
    with_parameters("oss://bucket/locks/", "?path_style=true&keep=1000", Some(secret), |mut command| {
        command.env("OSS_ENDPOINT", server.url());
        with_access(command)
    });

    let lock = format!("oss://bucket/locks/a?path_style=true&endpoint={}", server.url());
    let told = end_of(with_access(leaderelect(["history", "-o", "json", &lock])));
    let terms: Vec<Value> = told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ends: Vec<_> = terms.iter().map(|term| (&term["holder"], &term["ended"]["why"])).collect();
    assert_eq!(ends, [(&"node-1".into(), &"transferred".into()), (&"node-2".into(), &"released".into())], "{told:?}");

    let told = end_of(with_access(leaderelect(["probe", "-o", "json", &lock])));
    let probed: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&probed["verdict"], &probed["kind"]), (&"fit".into(), &"createOnly".into()), "{told:?}");
}

#[test]
fn on_oss_with_a_certificate_of_an_authority_of_ones_own() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (server, front) = runtime.block_on(async {
        let server = Oss::start().await;
        let front = TlsFront::start(&server.url(), &["http/1.1"], directory.path()).await;
        (server, front)
    });
    let status = |ca: &str| {
        let lock = format!("oss://bucket/locks/a?path_style=true&endpoint={}{ca}", front.url());
        let mut command = leaderelect(["status", "--request-timeout", "60s", &lock]);
        command.envs([("ALIBABA_CLOUD_ACCESS_KEY_ID", "key"), ("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "secret")]);
        end_of(command)
    };
    let unknown = status("");
    assert!(unknown.stderr.contains("name a file with the authority's certificate by ?ca= in the URL"), "{unknown:?}");
    let trusted = status(&format!("&ca={}", front.certificate().display()));
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert!(front.connections() > 0);
    drop(server);
}

#[test]
fn a_service_that_holds_no_lock_is_refused_by_name() {
    let told = end_of(leaderelect(["status", "obs://bucket/locks/a"]));
    assert_eq!(told.code, Some(64), "{told:?}");
    assert!(told.stderr.contains("obs:// holds no lock"), "{told:?}");
    let told = end_of(leaderelect(["status", "oss://bucket/locks/a"]));
    assert_eq!(told.code, Some(64), "{told:?}");
    assert!(told.stderr.contains("OSS_ENDPOINT"), "{told:?}");
}
