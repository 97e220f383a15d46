//! Ceph's own gateway, where it is installed.

use std::path::Path;
use std::time::Duration;

use leaderelection::causes::with_causes;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, ObjectStoreBasedLock as _, Timings,
};
use leaderelection_backends::s3::{S3Lock, S3Store};
use leaderelection_conformance::{CheckKind, Outcome, ProbeConfig, Verdict, probe};
use leaderelection_integration_tests::servers::ceph::Ceph;
use leaderelection_integration_tests::servers::unique_name;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const BUCKET: &str = "bucket";
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn cephs_gateway_elects_leaders_with_bare_etags_and_is_unusable_without() {
    let started = tokio::task::spawn_blocking(|| Ceph::start(Path::new(env!("CARGO_TARGET_TMPDIR")))).await;
    let server = match started.expect("no panic") {
        Ok(server) => server,
        Err(missing) => return println!("skipped: {missing}"),
    };
    let client = server.client();
    client.create_bucket().bucket(BUCKET).send().await.expect("a bucket");
    let store = S3Store::new(client, BUCKET);

    let config = ProbeConfig::new().prefix(format!("{}/", unique_name())).time_limit(PATIENCE);
    let report = probe(store.clone(), &config).await;
    assert_eq!(report.verdict(), Verdict::Unusable, "{report}");
    let decisive = report.decisive().expect("a reason");
    assert_eq!((decisive.kind(), decisive.outcome()), (CheckKind::StaleUpdate, Outcome::Refused), "{report}");
    assert!(report.to_string().contains("bare_etags=true"), "{report}");

    let store = store.with_bare_etags(true);
    let report = probe(store.clone(), &config).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    assert_eq!(report.leftovers(), Vec::<String>::new(), "{report}");

    let lock = S3Lock::new(store, unique_name(), "a");
    let timings = Timings::new(Duration::from_secs(60), Duration::from_secs(40), Duration::from_millis(300));
    let elector = LeaderElectionConfig::builder(lock.clone(), LeaderCallbacks::new())
        .timings(timings.expect("timings that fit"))
        .build();
    let elector = DefaultLeaderElector::new(elector.expect("a configuration"));
    let (mut handle, cancel) = (elector.handle(), CancellationToken::new());
    let watch = async {
        handle.elected().await.expect("the elector is there");
        let mut versions = Vec::new();
        while versions.len() < 4 {
            let seen = lock.get().await.unwrap_or_else(|error| panic!("{}", with_causes(&error)));
            let version = seen.expect("a record").version;
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        assert!(handle.is_leader());
        cancel.cancel();
    };
    let (outcome, watched) = tokio::join!(elector.run(cancel.clone().cancelled_owned()), timeout(PATIENCE, watch));
    watched.expect("renewals");
    assert_eq!(outcome.expect("no check").fencing_token(), Some(1.into()));
}
