//! The store on fake-gcs-server, which others have made after Google's documents.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use leaderelection::implement::ConditionalStore as _;
use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Timings};
use leaderelection_backends::gcs::{GcsLock, GcsStore};
use leaderelection_conformance::{CheckKind, Outcome, ProbeConfig, Verdict, probe};
use leaderelection_integration_tests::servers::fake_gcs_server::FakeGcsServer;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::every_store::CloudStore as _;

#[tokio::test(flavor = "multi_thread")]
async fn the_probe_finds_it_fit_and_a_leader_keeps_its_lease_on_it() {
    let server = FakeGcsServer::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let store = GcsStore::on(&server.url()).await;
    let report = probe(store.clone(), &ProbeConfig::new()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    // Deletions need gRPC.
    let last = report.checks().last().expect("checks");
    assert_eq!((last.kind(), last.outcome()), (CheckKind::StaleDelete, Outcome::Inconclusive), "{report}");
    assert!(report.to_string().contains("no election depends on it"), "{report}");

    let timings = Timings::new(Duration::from_secs(30), Duration::from_secs(20), Duration::from_secs(1));
    let lock = GcsLock::new(store.clone(), "locks/scheduler", "a");
    let config =
        LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).timings(timings.expect("timings that fit"));
    let elector = DefaultLeaderElector::new(config.build().expect("a configuration"));
    let (handle, cancel) = (elector.handle(), CancellationToken::new());
    let three_writes = async {
        let mut versions = BTreeSet::new();
        while versions.len() < 3 {
            versions.extend(store.get("locks/scheduler").await.expect("read").map(|found| found.version));
            // Reads without a pause would take a processor from the server.
            sleep(Duration::from_millis(50)).await;
        }
    };
    let watch = async {
        timeout(Duration::from_secs(60), three_writes).await.expect("renewals");
        assert!(handle.is_leader());
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(elector.run(cancel.clone().cancelled_owned()), watch);
    assert_eq!(outcome.expect("no check").fencing_token(), Some(1.into()));
}
