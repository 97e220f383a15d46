//! The state machine of sessions: every history of a few processes, and many histories of five.

use std::time::{Duration, Instant};

use leaderelection_protocol_tests::reach::explore;
use leaderelection_protocol_tests::sessions::model::{Question, electable, standard};
use leaderelection_protocol_tests::sessions::simulation::{Campaign, run};

use crate::{assert_every_promise_is_kept, report};

#[test]
fn every_history_of_sessions_keeps_every_promise() {
    assert_every_promise_is_kept("model", standard());
}

#[test]
fn every_process_can_come_to_lead_every_lock_from_every_state() {
    for Question { name, setup } in electable() {
        let began = Instant::now();
        let explored = explore(&setup);
        report(format!("model, {name}: {} states, {:.1} s", explored.states, began.elapsed().as_secs_f64()));
        assert!(explored.found.is_none(), "{name}: {:?}", explored.found);
    }
}

#[test]
fn every_promise_about_sessions_is_kept_for_two_hundred_simulated_hours() {
    let outcome = Campaign { simulated: Duration::from_secs(200 * 3600), first_seed: 0 }.run();
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
