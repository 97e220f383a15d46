//! Connections that a firewall has forgotten while the programs use them: one request is lost, and no term.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use futures_util::future::join_all;
use leaderelection_integration_tests::proxy::sign::{Signer, unsigned};
use leaderelection_integration_tests::proxy::{Exchange, Kind, Proxy};
use leaderelection_integration_tests::relay::Relay;
use leaderelection_integration_tests::servers::azurite::Azurite;
use leaderelection_integration_tests::servers::fake_gcs::{FakeGcs, Options};
use leaderelection_integration_tests::servers::seaweedfs::{BUCKET, SeaweedFs};
use leaderelection_integration_tests::servers::tls::TlsFront;
use rustix::process::Signal;
use tokio::runtime::Runtime;

use crate::lease_api::{LEASES, lease_api};
use crate::serve::sidecar::Sidecar;
use crate::support::{CLIENT, Running, leaderelect, run};

/// The way of a program to a server: the relay in front, and a proxy that sees the requests behind it.
struct Way {
    runtime: Runtime,
    proxy: Proxy,
    front: Option<TlsFront>,
    relay: Relay,
}

impl Way {
    /// `tls` is the directory for the certificate of a way by TLS, in HTTP/2.
    fn to(runtime: Runtime, server: &str, signer: Signer, tls: Option<&Path>) -> Self {
        let (proxy, front, relay) = runtime.block_on(async {
            let proxy = Proxy::start(server, signer).await;
            let front = match tls {
                Some(directory) => Some(TlsFront::start(&proxy.url(), &["h2", "http/1.1"], directory).await),
                None => None,
            };
            let relay = Relay::start(&front.as_ref().map_or_else(|| proxy.url(), TlsFront::url)).await;
            (proxy, front, relay)
        });
        Self { runtime, proxy, front, relay }
    }

    /// Checks that a command goes on in its term at the default timings although the connections of its program are forgotten
    /// after some renewals.
    fn keeps_a_term(&self, lock: &str, more: &[&str], renewals: usize, with_access: impl Fn(Command) -> Command) {
        let work = ["sh", "-c", "echo $LEADERELECTION_FENCING_TOKEN; exec sleep 1000"];
        let mut command = with_access(leaderelect(run(lock, more, &work)));
        if let Some(front) = &self.front {
            command.env("SSL_CERT_FILE", front.certificate());
        }
        let mut leader = Running::of(command);
        assert_eq!(leader.wait_for(""), "1");
        self.renewals(renewals);
        self.relay.forget();
        let forgotten = Instant::now();
        for renewal in ["the first", "another"] {
            self.renewals(1);
            println!("{lock}: {renewal} good renewal after {:.1?}", forgotten.elapsed());
        }
        leader.signal(Signal::TERM);
        let ended = leader.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(128 + 15), "1"), "{ended:?}");
    }

    /// Waits for further committed renewals.
    fn renewals(&self, more: usize) {
        let seen = self.proxy.traffic().len();
        let committed = |exchange: &&Exchange| exchange.kind == Kind::Renewal && exchange.committed();
        let holds = |traffic: &[Exchange]| traffic[seen..].iter().filter(committed).count() >= more;
        self.runtime.block_on(self.proxy.wait_for("renewals", holds));
    }
}

fn seaweedfs() -> (Runtime, SeaweedFs) {
    let (runtime, server) = (Runtime::new().unwrap(), SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR"))));
    runtime.block_on(server.create_bucket(BUCKET));
    (runtime, server)
}

#[test]
fn a_term_on_s3_in_http_2_goes_on() {
    let ((runtime, server), directory) = (seaweedfs(), tempfile::tempdir().unwrap());
    let way = Way::to(runtime, &server.url(), server.signer(), Some(directory.path()));
    let lock = format!("s3://bucket/locks/a?region=us-east-1&endpoint={}", way.relay.url());
    way.keeps_a_term(&lock, &[], 1, |mut command| {
        command.envs(server.environment());
        command
    });
    // The host has no header of its own in HTTP/2.
    assert!(way.proxy.traffic().iter().all(|exchange| exchange.request.header("host").is_none()));
    assert!(way.relay.accepted() < 10, "{} connections", way.relay.accepted());
}

#[test]
fn a_term_on_azure_goes_on() {
    let server = Azurite::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async { server.container("container").create(None).await.map(drop) }).unwrap();
    let way = Way::to(runtime, &server.url(), unsigned(), None);
    let access = server.connection_string().replace(&server.url(), way.relay.url());
    way.keeps_a_term(&format!("az://{}/container/locks/a", server.account_key().0), &[], 1, |mut command| {
        command.env("AZURE_STORAGE_CONNECTION_STRING", &access);
        command
    });
}

#[test]
fn a_term_on_gcs_goes_on() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(FakeGcs::start(Options::default()));
    let way = Way::to(runtime, &server.url(), unsigned(), None);
    way.keeps_a_term("gs://bucket/locks/a", &[], 1, |mut command| {
        command.env("STORAGE_EMULATOR_HOST", way.relay.url());
        command
    });
}

/// The probe has left a connection for each of its writers. Ten renewals take 20 s.
#[test]
fn a_term_on_s3_goes_on_20_s_after_the_probe_of_its_store() {
    let (runtime, server) = seaweedfs();
    let way = Way::to(runtime, &server.url(), server.signer(), None);
    let lock = format!("s3://bucket/locks/a?region=us-east-1&endpoint={}", way.relay.url());
    way.keeps_a_term(&lock, &["--require-probe"], 10, |mut command| {
        command.envs(server.environment());
        command
    });
    println!("{} connections", way.relay.accepted());
}

#[test]
fn a_lease_api_answers_again_after_a_burst_of_clients() {
    let (runtime, server) = seaweedfs();
    runtime.block_on(async {
        let relay = Relay::start(&server.url()).await;
        let folder = format!("s3://bucket/leases?endpoint={}", relay.url());
        let mut command = lease_api(&folder, "127.0.0.1:0");
        let api = Sidecar::spawn(command.envs(server.environment())).await;
        let ask = async || {
            let answer = CLIENT.get(format!("{}{LEASES}/web?timeout=2s", api.url())).send().await.unwrap();
            answer.status().as_u16()
        };
        assert_eq!(join_all((0..40).map(|_| ask())).await, [404; 40]);
        assert!(relay.accepted() > 1, "{} connections", relay.accepted());
        relay.forget();
        let forgotten = Instant::now();
        assert!(ask().await >= 500, "no answer came");
        assert_eq!(ask().await, 404);
        println!("lease-api: the first good answer after {:.1?}", forgotten.elapsed());
        for _ in 0..12 {
            assert_eq!(ask().await, 404);
        }
    });
}
