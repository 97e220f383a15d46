//! Releases that fail in transit.

use std::sync::Arc;

use leaderelection::TermEndReason;
use leaderelection_integration_tests::proxy::{Delivery, Exchange, Fault, Kind, Reply};

use super::lies::{LIES, Lie};
use super::run_all;
use super::stage::{Stage, Started, Stopped, WorkEnded, led};
use crate::cloud::Cloud;

pub(super) async fn a_release_without_a_good_answer_is_confirmed(cloud: Arc<Cloud>) {
    run_all(LIES.map(|lie| (lie.name, release(Arc::clone(&cloud), lie)))).await;
}

async fn release(cloud: Arc<Cloud>, lie: Lie) {
    let stage = Stage::new(&cloud).await;
    let mut a = stage.candidate("a").await;
    a.spoil(0, Kind::Release, lie.fault);
    if let Some(next) = lie.next {
        a.spoil(1, Kind::Release, next);
    }
    a.run();
    a.wait_for_renewals(1).await;
    a.retire(&stage, 1).await;
    let sent = a.requests(Kind::Release);
    assert_eq!(sent.iter().filter(|exchange| exchange.committed()).count(), 1, "{sent:#?}");
    if lie.commits && cloud.makes_one_attempt() {
        assert_eq!(a.informed(Kind::Release).len(), 1, "released, and written again: {sent:#?}");
    }

    let mut b = stage.candidate("b").await;
    b.run();
    b.wait_for(Started(2)).await;
    let late = a.proxy.deliver_held().await;
    assert!(late.iter().all(|status| matches!(status, 409 | 412)), "{late:?}");
    b.wait_for_renewals(1).await;
    assert_eq!(stage.holder().await, ("b".to_owned(), 2));
    b.retire(&stage, 2).await;
    a.check();
    b.check();
}

pub(super) async fn a_release_that_never_arrives_lets_the_lease_expire(cloud: Arc<Cloud>) {
    const HELD: Fault = Fault::new(Delivery::Held, Reply::Silence);
    const LOST: Fault = Fault::new(Delivery::Never, Reply::Cut);
    let stage = Stage::expiring(&cloud).await;
    let (mut a, mut b) = (stage.candidate("a").await, stage.candidate("b").await);
    a.proxy.spoil_from(0, |request| request.kind() == Kind::Release, HELD, LOST);
    a.run();
    a.wait_for_renewals(1).await;
    b.run();
    b.wait_for_leader("a").await;
    a.cancel();

    let outcome = a.ended().await.expect("it ran");
    assert_eq!(outcome, led(1, TermEndReason::Cancelled));
    let stopped = a.wait_for(Stopped).await;
    let started = b.wait_for(Started(2)).await;
    assert!(stopped.valid_until < started.at, "{stopped:?}, {started:?}");
    // The release arrives at last.
    assert_eq!(a.proxy.deliver_held().await, [412]);
    b.wait_for_renewals(2).await;
    assert_eq!(stage.holder().await, ("b".to_owned(), 2));
    assert_eq!(a.events(), [Started(1), WorkEnded, Stopped]);
    b.retire(&stage, 2).await;
    a.check();
    b.check();
}

pub(super) async fn a_release_whose_answer_was_lost_does_not_erase_the_successors_lease(cloud: Arc<Cloud>) {
    let replies = [
        ("no answer", Reply::Silence),
        ("no connection", Reply::Cut),
        ("answered 500", Reply::Status(500)),
        ("answered 412", Reply::Status(412)),
        ("answered 429", Reply::Throttled(0)),
    ];
    run_all(replies.map(|(name, reply)| (name, hand_over(Arc::clone(&cloud), reply)))).await;
}

/// The successor leads before its predecessor gets an answer to its release.
async fn hand_over(cloud: Arc<Cloud>, reply: Reply) {
    let stage = Stage::new(&cloud).await;
    let (mut a, mut b) = (stage.candidate("a").await, stage.candidate("b").await);
    // Between the release and the successor's term, no other request of the predecessor arrives.
    let held = Fault::new(Delivery::Held, Reply::Honest);
    a.proxy.spoil_from(0, |request| request.kind() == Kind::Release, Fault::new(Delivery::Once, reply), held);
    a.run();
    a.wait_for_renewals(1).await;
    b.run();
    b.wait_for_leader("a").await;
    a.cancel();
    b.wait_for(Started(2)).await;
    a.proxy.set_outage(None);
    a.proxy.deliver_held().await;

    let outcome = a.ended().await.expect("it ran");
    assert_eq!(outcome, led(1, TermEndReason::Cancelled));
    b.wait_for_renewals(2).await;
    assert_eq!(stage.holder().await, ("b".to_owned(), 2));
    assert_eq!(b.events(), [Started(2)]);
    assert_eq!(a.events(), [Started(1), WorkEnded, Stopped]);
    let refused = |exchange: &&Exchange| exchange.answers.iter().any(|answer| *answer >= 300);
    let renewals = b.informed(Kind::Renewal);
    assert_eq!(renewals.iter().filter(refused).count(), 0, "somebody wrote over it: {renewals:#?}");
    b.retire(&stage, 2).await;
    a.check();
    b.check();
}
