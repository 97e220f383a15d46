//! The protocol against every history, and against many of the real elector.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Display;
use std::io::{Write, stderr};
use std::time::Instant;

use leaderelection_protocol_tests::exploring::{Explored, Question};
use stateright::{Checker, Expectation};

mod costs;
mod migration;
mod model;
mod sequenced;
mod sessions;
mod simulation;

/// Says what a test has explored. What `println` prints in a test that passes is kept from the reader.
fn report(figures: impl Display) {
    stderr().write_all(format!("{figures}\n").as_bytes()).expect("somebody to read what was explored");
}

/// Explores every history of the setups. Fails with the shortest way to what should not be, for every setup in which there
/// is one.
fn assert_every_promise_is_kept<M: Explored>(kind: &str, questions: Vec<Question<M>>) {
    let mut broken = Vec::new();
    for Question { name, setup } in questions {
        let began = Instant::now();
        let checker = setup.checker().threads(2).spawn_bfs().join();
        let took = began.elapsed().as_secs_f64();
        let (states, depth) = (checker.unique_state_count(), checker.max_depth());
        report(format!("{kind}, {name}: {states} states, {depth} steps deep, {took:.1} s"));
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
