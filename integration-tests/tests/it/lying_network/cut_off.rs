//! Leaders that can no longer reach the store.

use std::sync::Arc;

use leaderelection::TermEndReason;
use leaderelection_integration_tests::proxy::{Exchange, Fault, Kind};

use super::lies::{HANGS, OUTAGES};
use super::run_all;
use super::stage::{Stage, Started, Stopped, WorkEnded, led};
use crate::cloud::Cloud;

pub(super) async fn a_leader_cut_off_from_the_store_stops_before_any_other_can_start(cloud: Arc<Cloud>) {
    run_all(OUTAGES.map(|(name, outage)| (name, cut_off(Arc::clone(&cloud), outage)))).await;
}

pub(super) async fn a_store_that_hangs_cannot_keep_a_leader_past_its_deadline(cloud: Arc<Cloud>) {
    run_all(HANGS.map(|(name, hang)| (name, cut_off(Arc::clone(&cloud), hang)))).await;
}

async fn cut_off(cloud: Arc<Cloud>, outage: Fault) {
    let stage = Stage::expiring(&cloud).await;
    let (mut a, mut b) = (stage.candidate("a").await, stage.candidate("b").await);
    a.run();
    a.wait_for_renewals(1).await;
    b.run();
    b.wait_for_leader("a").await;
    a.proxy.set_outage(Some(outage));

    let started = b.wait_for(Started(2)).await;
    let stopped = a.wait_for(Stopped).await;
    assert_eq!(a.events(), [Started(1), WorkEnded, Stopped]);
    assert!(stopped.at < started.at && stopped.valid_until < started.at, "{stopped:?}, {started:?}");
    assert!(!a.handle.is_leader());
    // A write without an answer did not extend the window.
    let is_good = |exchange: &&Exchange| exchange.kind != Kind::Read && exchange.committed() && exchange.was_honest();
    let answered = a.proxy.traffic().iter().filter(is_good).map(|exchange| exchange.arrived).max();
    let deadline = answered.expect("it has led") + stage.timings.renew_deadline();
    assert!(stopped.valid_until <= deadline, "{stopped:?}, {deadline:?}");
    let outcome = a.ended().await.expect("it ran");
    assert_eq!(outcome, led(1, TermEndReason::RenewDeadline));

    b.wait_for_renewals(2).await;
    assert_eq!(stage.holder().await, ("b".to_owned(), 2));
    b.retire(&stage, 2).await;
    a.check();
    b.check();
}
