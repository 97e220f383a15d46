//! The state machine of sessions: every history of a few processes, and many histories of five.

use std::time::{Duration, Instant};

use leaderelection_protocol_tests::reach::explore;
use leaderelection_protocol_tests::sessions::model::{Question, electable, standard};
use leaderelection_protocol_tests::sessions::simulation::{Campaign, run};
use stateright::{Checker, Expectation, Model};

use crate::report;

/// Fails with the shortest way to what should not be, for every setup in which there is one.
#[test]
fn every_history_of_sessions_keeps_every_promise() {
    let mut broken = Vec::new();
    for Question { name, setup } in standard() {
        let began = Instant::now();
        let checker = setup.checker().threads(2).spawn_bfs().join();
        let took = began.elapsed().as_secs_f64();
        let (states, depth) = (checker.unique_state_count(), checker.max_depth());
        report(format!("model, {name}: {states} states, {depth} steps deep, {took:.1} s"));
        for property in checker.model().properties() {
            let found = checker.discovery(property.name);
            match property.expectation {
                Expectation::Sometimes if found.is_none() => broken.push(format!("{name}: never {}", property.name)),
                Expectation::Sometimes => {}
                _ => broken.extend(found.map(|path| {
                    let steps = path.into_actions();
                    format!("{name}: violated: {} by {steps:?}", property.name)
                })),
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
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
