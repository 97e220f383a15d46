//! Candidates that try to take the same lease at the same moment.

use std::sync::Arc;

use leaderelection::LeaderElectionConfigBuilder;
use leaderelection_integration_tests::proxy::{Delivery, Fault, Kind, Reply};

use super::run_all;
use super::stage::{Candidate, Stage, Started};
use crate::cloud::Cloud;

const HELD: Fault = Fault::new(Delivery::Held, Reply::Honest);

pub(super) async fn two_candidates_that_read_the_same_version_cannot_both_win(cloud: Arc<Cloud>) {
    let rounds = [
        ("creates", Kind::Create, false),
        ("creates, the other one first", Kind::Create, true),
        ("takeovers", Kind::Takeover, false),
        ("takeovers, the other one first", Kind::Takeover, true),
    ];
    run_all(rounds.map(|(name, kind, swap)| (name, race(Arc::clone(&cloud), kind, swap)))).await;
}

async fn race(cloud: Arc<Cloud>, kind: Kind, swap: bool) {
    let stage = Stage::new(&cloud).await;
    let token = if kind == Kind::Takeover { 7 } else { 1 };
    if kind == Kind::Takeover {
        stage.plant_released(token - 1).await;
    }
    // The timeout is long enough for both candidates to send their writes, and less than half of the renew
    // deadline.
    let timeout = stage.timings.renew_deadline().mul_f64(0.49);
    let patient = |builder: LeaderElectionConfigBuilder| builder.request_timeout(timeout);
    let mut candidates = [stage.candidate_with("a", patient).await, stage.candidate_with("b", patient).await];
    for candidate in &mut candidates {
        candidate.spoil(0, kind, HELD);
        candidate.run();
    }
    let [a, b] = &candidates;
    tokio::join!(a.proxy.wait_for_held(1), b.proxy.wait_for_held(1));
    let (first, second) = if swap { (b, a) } else { (a, b) };
    // Both deliveries start at the same time, in this order.
    let answers = tokio::join!(biased; first.proxy.deliver_held(), second.proxy.deliver_held());
    let won = [answers.0, answers.1].concat().iter().filter(|status| **status < 300).count();
    assert_eq!(won, 1, "both wrote over the same version");

    let winner = tokio::select! {
        _ = a.wait_for(Started(token)) => 0,
        _ = b.wait_for(Started(token)) => 1,
    };
    let names = ["a", "b"];
    candidates[1 - winner].wait_for_leader(names[winner]).await;
    candidates[winner].wait_for_renewals(2).await;
    assert_eq!(stage.holder().await, (names[winner].to_owned(), token));
    let losers = |candidates: &[Candidate; 2]| candidates[1 - winner].events();
    assert_eq!(losers(&candidates), []);
    candidates[winner].cancel();
    candidates[winner].ended().await.expect("the store is fit");
    // The other candidate takes the released lease, as a new term.
    candidates[1 - winner].wait_for(Started(token + 1)).await;
    candidates[1 - winner].retire(&stage, token + 1).await;
    for candidate in &candidates {
        candidate.check();
    }
}
