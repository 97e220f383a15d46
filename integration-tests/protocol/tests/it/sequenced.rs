//! The calls of a sequenced store, explored: every interleaving of the requests of two processes.

use std::time::Instant;

use leaderelection_protocol_tests::sequenced::{Question, standard};
use stateright::{Checker, Expectation, Model};

use crate::report;

/// Fails with the shortest way to what should not be, for every setup in which there is one.
#[test]
fn every_interleaving_keeps_the_contract_of_a_store() {
    let mut broken = Vec::new();
    for Question { name, setup } in standard() {
        let began = Instant::now();
        let checker = setup.checker().threads(2).spawn_bfs().join();
        let took = began.elapsed().as_secs_f64();
        let (states, depth) = (checker.unique_state_count(), checker.max_depth());
        report(format!("sequenced store, {name}: {states} states, {depth} steps deep, {took:.1} s"));
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
