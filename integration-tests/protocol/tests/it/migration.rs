//! The move from one lock to another, explored: every interleaving of two processes and two locks.

use std::time::Instant;

use leaderelection_protocol_tests::migration::{Question, broken, standard};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

use crate::report;

/// Fails with the shortest way to what should not be, for every setup in which there is one.
#[test]
fn every_interleaving_of_a_move_keeps_every_promise() {
    let mut violated = Vec::new();
    for Question { name, setup } in standard() {
        let began = Instant::now();
        let checker = setup.checker().threads(2).spawn_bfs().join();
        let took = began.elapsed().as_secs_f64();
        let (states, depth) = (checker.unique_state_count(), checker.max_depth());
        report(format!("migration, {name}: {states} states, {depth} steps deep, {took:.1} s"));
        for property in checker.model().properties() {
            let found = checker.discovery(property.name);
            match property.expectation {
                Expectation::Sometimes if found.is_none() => violated.push(format!("{name}: never {}", property.name)),
                Expectation::Sometimes => {}
                _ => violated.extend(found.map(|path| {
                    let steps = path.into_actions();
                    format!("{name}: violated: {} by {steps:?}", property.name)
                })),
            }
        }
    }
    assert!(violated.is_empty(), "{}", violated.join("\n"));
}

/// Rule M8 is necessary: each of its two halves, in either direction.
#[test]
fn a_rollout_that_does_not_wait_breaks_a_promise() {
    for (Question { name, setup }, promise) in broken() {
        let checker = setup.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let path = checker.discovery(promise).unwrap_or_else(|| panic!("{name}: {promise} is kept"));
        report(format!("migration, {name}: breaks {promise:?} after {} steps", path.into_actions().len()));
    }
}
