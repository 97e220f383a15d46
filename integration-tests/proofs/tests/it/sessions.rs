//! The state machine of sessions: every history of a few processes, and many histories of five.

use std::time::Duration;

use leaderelection_proofs::sessions::simulation::{Campaign, run};

use crate::{keeps_every_promise, report};

#[test]
fn every_history_of_sessions_keeps_every_promise() {
    keeps_every_promise("sessions");
}

#[test]
fn every_promise_about_sessions_is_kept_for_100_simulated_hours() {
    let outcome = Campaign { simulated: Duration::from_secs(100 * 3600), first_seed: 0, threads: None }.run();
    assert!(outcome.failed.is_none(), "{outcome}");
    report(format!("simulation of sessions: {outcome}"));
}

#[test]
fn one_seed_of_sessions_is_one_history() {
    for seed in 0..5 {
        let histories = [(); 2].map(|()| run(seed, 1_000_000).story);
        assert_eq!(histories[0], histories[1], "seed {seed}");
    }
}
