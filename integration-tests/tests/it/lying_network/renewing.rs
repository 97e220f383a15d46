//! Renewals that fail in transit.

use std::sync::Arc;

use leaderelection_integration_tests::proxy::{Exchange, Kind};

use super::lies::{LIES, Lie};
use super::run_all;
use super::stage::{Stage, Started};
use crate::cloud::Cloud;

pub(super) async fn a_renewal_without_a_good_answer_is_not_a_lost_lease(cloud: Arc<Cloud>) {
    run_all(LIES.map(|lie| (lie.name, renew(Arc::clone(&cloud), lie)))).await;
}

async fn renew(cloud: Arc<Cloud>, lie: Lie) {
    let stage = Stage::new(&cloud).await;
    let mut a = stage.candidate("a").await;
    a.spoil(1, Kind::Renewal, lie.fault);
    if let Some(next) = lie.next {
        a.spoil(2, Kind::Renewal, next);
    }
    a.run();
    let is_spoilt = |exchange: &Exchange| exchange.fault == Some(lie.fault);
    a.proxy.wait_for("the spoilt renewal", |traffic| traffic.iter().any(is_spoilt)).await;
    a.wait_for_renewals(2).await;

    let late = a.proxy.deliver_held().await;
    assert!(late.iter().all(|status| matches!(status, 409 | 412)), "{late:?}");
    a.wait_for_renewals(1).await;
    if lie.commits && cloud.makes_one_attempt() {
        // A read shows the version, and the renewals continue from it.
        let refused =
            |exchange: &&Exchange| !is_spoilt(exchange) && exchange.answers.iter().any(|answer| *answer >= 300);
        let renewals = a.informed(Kind::Renewal);
        assert_eq!(renewals.iter().filter(refused).count(), 0, "{renewals:#?}");
    }
    assert!(a.handle.is_leader());
    assert_eq!(a.handle.fencing_token(), Some(1.into()));
    assert_eq!(a.events(), [Started(1)]);
    assert_eq!(stage.holder().await, ("a".to_owned(), 1));
    a.retire(&stage, 1).await;
    a.check();
}
