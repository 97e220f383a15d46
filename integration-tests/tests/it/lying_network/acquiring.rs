//! Creates and takeovers that fail in transit.

use std::sync::Arc;

use leaderelection_integration_tests::proxy::Kind;

use super::lies::{LIES, Lie};
use super::run_all;
use super::stage::{Stage, Started};
use crate::cloud::Cloud;

pub(super) async fn a_won_create_makes_a_leader_that_does_not_wait_for_itself(cloud: Arc<Cloud>) {
    run_all(LIES.map(|lie| (lie.name, acquire(Arc::clone(&cloud), Kind::Create, lie)))).await;
}

pub(super) async fn a_won_takeover_makes_a_leader_that_does_not_wait_for_itself(cloud: Arc<Cloud>) {
    run_all(LIES.map(|lie| (lie.name, acquire(Arc::clone(&cloud), Kind::Takeover, lie)))).await;
}

async fn acquire(cloud: Arc<Cloud>, kind: Kind, lie: Lie) {
    let stage = Stage::new(&cloud).await;
    let token = if kind == Kind::Takeover { 7 } else { 1 };
    if kind == Kind::Takeover {
        stage.plant_released(token - 1).await;
    }
    let mut a = stage.candidate("a").await;
    a.spoil(0, kind, lie.fault);
    if let Some(next) = lie.next {
        a.spoil(1, kind, next);
    }
    a.run();

    // A takeover of the candidate's own record would have a larger token.
    a.wait_for(Started(token)).await;
    a.wait_for_renewals(1).await;
    let sent = a.requests(kind);
    assert_eq!(sent.iter().filter(|exchange| exchange.committed()).count(), 1, "{sent:#?}");
    if lie.commits && cloud.makes_one_attempt() {
        assert_eq!(a.informed(kind).len(), 1, "it was won, and written again: {sent:#?}");
    }
    let late = a.proxy.deliver_held().await;
    assert!(late.iter().all(|status| matches!(status, 409 | 412)), "{late:?}");
    a.wait_for_renewals(1).await;
    assert_eq!(stage.holder().await, ("a".to_owned(), token));
    assert_eq!(a.events(), [Started(token)]);
    a.retire(&stage, token).await;
    a.check();
}
