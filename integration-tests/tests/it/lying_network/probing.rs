//! Faulty stores, and the probe that detects them.

use leaderelection::implement::ListedObject;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::implement::ConditionalStoreExt as _;
use leaderelection_conformance::{CheckKind, Outcome, ProbeConfig, ProbeFirst, ProbeReport, Verdict, probe};
use leaderelection_integration_tests::proxy::{Conditions, Proxy};

use super::run_all;
use super::stage::Stage;
use crate::cloud::Cloud;

/// Probes through `proxy`, and checks that no object is left.
async fn probed(cloud: &Cloud, proxy: &Proxy) -> ProbeReport {
    let store = cloud.store_by(proxy).await;
    let prefix = cloud.key();
    // SeaweedFS delays the losers of a race by about a second, so the probe uses few racers.
    let effort = ProbeConfig::new().writers(4).time_limit(Duration::from_secs(120));
    let report = probe(Arc::clone(&store), &effort.prefix(prefix.clone())).await;
    assert_eq!(report.leftovers(), Vec::<String>::new(), "{report}");
    assert_eq!(ListedObject::keys(store.list(&prefix).await.expect("a listing")), Vec::<String>::new(), "{report}");
    report
}

fn outcome(report: &ProbeReport, kind: CheckKind) -> Outcome {
    report.checks().iter().find(|check| check.kind() == kind).expect("every check is reported").outcome()
}

pub(super) async fn the_probe_finds_the_server_itself_fit(cloud: Arc<Cloud>) {
    let report = probed(&cloud, &cloud.proxy().await).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
}

pub(super) async fn the_probe_sees_a_server_that_ignores_conditions(cloud: Arc<Cloud>) {
    let proxy = cloud.proxy().await;
    proxy.set_conditions(Conditions::Ignored);
    let report = probed(&cloud, &proxy).await;
    assert_eq!(report.verdict(), Verdict::Unfit, "{report}");
    for check in report.checks().iter().filter(|check| check.kind().is_required()) {
        assert_eq!(check.outcome(), Outcome::Failed, "{check}: {report}");
    }
    assert!(report.to_string().contains("a second create was accepted"), "{report}");
}

pub(super) async fn the_probe_sees_a_server_that_ignores_conditions_only_under_concurrency(cloud: Arc<Cloud>) {
    let proxy = cloud.proxy().await;
    proxy.set_conditions(Conditions::IgnoredUnderConcurrency);
    let report = probed(&cloud, &proxy).await;
    assert_eq!(report.verdict(), Verdict::Unfit, "{report}");
    for kind in [CheckKind::CreateTwice, CheckKind::StaleUpdate, CheckKind::UpdateMissing] {
        assert_eq!(outcome(&report, kind), Outcome::Passed, "{kind}: {report}");
    }
    for kind in [CheckKind::RacingCreators, CheckKind::RacingUpdaters] {
        assert_eq!(outcome(&report, kind), Outcome::Failed, "{kind}: {report}");
    }
}

pub(super) async fn nobody_is_elected_on_a_server_that_ignores_conditions(cloud: Arc<Cloud>) {
    let modes = [("always", Conditions::Ignored), ("only under concurrency", Conditions::IgnoredUnderConcurrency)];
    run_all(modes.map(|(name, conditions)| (name, stand_for_nothing(Arc::clone(&cloud), conditions)))).await;
}

async fn stand_for_nothing(cloud: Arc<Cloud>, conditions: Conditions) {
    let stage = Stage::new(&cloud).await;
    let mut a = stage.candidate_with("a", |builder| builder.store_check(ProbeFirst::new())).await;
    a.proxy.set_conditions(conditions);
    a.run();
    a.ended().await.expect_err("the store is unfit");
    assert_eq!(a.events(), []);
    assert!(!stage.exists().await, "a lease was written");
}
