//! Servers that compare the ETag of a condition without its quotes, as Ceph's gateway does.
//!
//! A proxy before the real server stands for them: it refuses ETags with quotes, and passes others on with quotes.

use std::time::Duration;

use leaderelection::causes::with_causes;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, ObjectStoreBasedLock as _, StoreErrorKind,
    Timings, admin,
};
use leaderelection_backends::s3::{S3Lock, S3Store};
use leaderelection_conformance::{CheckKind, Outcome, ProbeConfig, Verdict, probe};
use leaderelection_integration_tests::proxy::{Conditions, Kind, Proxy};
use leaderelection_integration_tests::servers::unique_name;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cloud::s3::seaweedfs;

const PATIENCE: Duration = Duration::from_secs(60);

async fn proxy() -> (Proxy, S3Store) {
    let server = seaweedfs().await;
    let proxy = Proxy::start(&server.url(), server.signer()).await;
    proxy.set_conditions(Conditions::BareEtags);
    let store = S3Store::new(server.client_by(&proxy.url()), "bucket");
    (proxy, store)
}

fn elector(lock: S3Lock) -> DefaultLeaderElector {
    let timings = Timings::new(Duration::from_secs(60), Duration::from_secs(40), Duration::from_millis(300));
    let config =
        LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).timings(timings.expect("timings that fit"));
    DefaultLeaderElector::new(config.build().expect("a configuration"))
}

#[tokio::test]
async fn the_probe_tells_that_nobody_could_keep_the_lease() {
    let (_proxy, store) = proxy().await;
    let config = ProbeConfig::new().prefix(format!("{}/", unique_name())).writers(2);
    let report = probe(store.clone(), &config).await;
    assert_eq!(report.verdict(), Verdict::Unusable, "{report}");
    let decisive = report.decisive().expect("a reason");
    assert_eq!((decisive.kind(), decisive.outcome()), (CheckKind::StaleUpdate, Outcome::Refused), "{report}");
    assert!(report.to_string().contains("bare_etags=true"), "{report}");
    assert_eq!(report.leftovers(), Vec::<String>::new(), "{report}");

    let report = probe(store.with_bare_etags(true), &config).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    assert_eq!(report.leftovers(), Vec::<String>::new(), "{report}");
}

#[tokio::test]
async fn a_leader_that_sends_bare_etags_renews_its_lease() {
    let (proxy, store) = proxy().await;
    let elector = elector(S3Lock::new(store.with_bare_etags(true), unique_name(), "a"));
    let (handle, cancel) = (elector.handle(), CancellationToken::new());
    let watch = async {
        let is_renewal = |exchange: &leaderelection_integration_tests::proxy::Exchange| {
            exchange.kind == Kind::Renewal && exchange.committed()
        };
        proxy.wait_for("renewals", |traffic| traffic.iter().filter(|exchange| is_renewal(exchange)).count() > 3).await;
        assert!(handle.is_leader());
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(elector.run(cancel.clone().cancelled_owned()), watch);
    assert_eq!(outcome.expect("no check").fencing_token(), Some(1.into()));
}

#[tokio::test]
async fn without_them_everybody_is_told_what_is_wrong() {
    let (_proxy, store) = proxy().await;
    let lock = S3Lock::new(store, unique_name(), "a");
    let elector = elector(lock.clone());
    let (mut handle, cancel) = (elector.handle(), CancellationToken::new());
    let watch = async {
        let blamed = async {
            loop {
                let error = handle.next_error().await.expect("the elector is there");
                // A busy machine may answer too late.
                if error.kind == StoreErrorKind::Fatal {
                    return error;
                }
            }
        };
        let error = timeout(PATIENCE, blamed).await.expect("in time");
        assert!(error.message.contains("`leaderelect probe`"), "{}", error.message);
        let seen = lock.get().await.expect("read").expect("a record").record;
        for error in [
            admin::force_release(&lock, &seen).await.expect_err("refused"),
            admin::request_transfer(&lock, &seen, "b").await.expect_err("refused"),
        ] {
            assert!(with_causes(&error).contains("`leaderelect probe`"), "{error:?}");
        }
        cancel.cancel();
    };
    let _ran = tokio::join!(elector.run(cancel.clone().cancelled_owned()), watch);
}
