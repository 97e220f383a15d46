//! Renewals that arrive after the end of their term.

use std::sync::Arc;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection_integration_tests::proxy::{Delivery, Fault, Kind, Reply};

use super::stage::{Candidate, Stage, Started, Stopped, WorkEnded};
use crate::cloud::Cloud;

const HELD: Fault = Fault::new(Delivery::Held, Reply::Silence);
const LOST: Fault = Fault::new(Delivery::Never, Reply::Silence);

/// Prepares a leader with token 1. One of its renewals is held, and all later requests fail.
async fn hold_a_renewal(a: &mut Candidate, start: fn(&mut Candidate), rest: Fault) {
    a.proxy.spoil_from(1, |request| request.kind() == Kind::Renewal, HELD, rest);
    start(a);
    a.proxy.wait_for_held(1).await;
}

pub(super) async fn a_late_renewal_cannot_bring_back_a_released_term(cloud: Arc<Cloud>) {
    let stage = Stage::new(&cloud).await;
    let mut a = stage.candidate("a").await;
    hold_a_renewal(&mut a, Candidate::run, LOST).await;
    a.proxy.set_outage(None);
    a.retire(&stage, 1).await;
    let released = stage.stored().await;
    assert_eq!(a.proxy.deliver_held().await, [412]);
    let stored = stage.stored().await;
    assert_eq!((stored.record, stored.version), (released.record, released.version));
    let mut b = stage.candidate("b").await;
    b.run();
    b.wait_for(Started(2)).await;
    b.retire(&stage, 2).await;
    a.check();
    b.check();
}

pub(super) async fn a_late_renewal_cannot_bring_back_a_term_that_was_taken_over(cloud: Arc<Cloud>) {
    let stage = Stage::expiring(&cloud).await;
    let mut a = stage.candidate("a").await;
    hold_a_renewal(&mut a, Candidate::campaign, LOST).await;
    let mut b = stage.candidate("b").await;
    b.run();
    b.wait_for(Started(2)).await;
    a.proxy.set_outage(None);
    assert!(matches!(a.proxy.deliver_held().await[..], [409 | 412]), "it was refused");
    a.wait_for_leader("b").await;
    b.wait_for_renewals(2).await;
    assert_eq!(stage.holder().await, ("b".to_owned(), 2));
    assert_eq!(a.events(), [Started(1), WorkEnded, Stopped]);
    assert_eq!(b.events(), [Started(2)]);
    a.cancel();
    a.ended().await.expect("the store is fit");
    b.retire(&stage, 2).await;
    a.check();
    b.check();
}

pub(super) async fn a_renewal_committed_after_the_term_makes_nobody_lead(cloud: Arc<Cloud>) {
    let stage = Stage::expiring(&cloud).await;
    let mut a = stage.candidate_with("a", |builder| builder.release_on_cancel(false)).await;
    hold_a_renewal(&mut a, Candidate::campaign, LOST).await;
    a.wait_for(Stopped).await;
    // No other candidate has taken the lease yet, so the renewal takes effect.
    let before = SystemClock.now();
    assert!(matches!(a.proxy.deliver_held().await[..], [200 | 201]), "it was committed");
    assert_eq!(stage.holder().await, ("a".to_owned(), 1));
    a.proxy.set_outage(None);

    // The candidate may lead again, but in a new term, and only after the lease without a holder has expired.
    let again = a.wait_for(Started(2)).await;
    assert!(again.at >= before + stage.timings.lease_duration(), "{again:?} after {before:?}");
    assert_eq!(a.events(), [Started(1), WorkEnded, Stopped, Started(2)]);
    a.cancel();
    a.ended().await.expect("the store is fit");
    a.check();
}

pub(super) async fn a_renewal_committed_during_the_release_is_released_too(cloud: Arc<Cloud>) {
    let stage = Stage::new(&cloud).await;
    let mut a = stage.candidate("a").await;
    hold_a_renewal(&mut a, Candidate::run, Fault::new(Delivery::Never, Reply::Cut)).await;
    a.cancel();
    a.wait_for(Stopped).await;
    assert!(matches!(a.proxy.deliver_held().await[..], [200 | 201]), "it was committed");
    a.proxy.set_outage(None);
    a.retire(&stage, 1).await;
    a.check();
}
