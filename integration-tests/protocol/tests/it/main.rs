//! The protocol against every history, and against many of the real elector.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Display;
use std::io::{Write, stderr};
use std::time::Instant;

use leaderelection_protocol_tests::exploring::{Explored, Question};
use leaderelection_protocol_tests::reach::{Reach, explore};

mod costs;
mod migration;
mod model;
mod sequenced;
mod sessions;
mod simulation;

/// Explores every history of each setup of a model. Fails with the shortest way to what should not be, for every setup in
/// which there is one.
fn keeps_every_promise<M: Explored>(model: &str, questions: Vec<Question<M>>) {
    let mut broken = Vec::new();
    for question in questions {
        let found = question.explore(None);
        report(format!("{model}, {found}"));
        let name = found.name;
        broken.extend(found.never.iter().map(|what| format!("{name}: never {what}")));
        let told = |(promise, steps): &(_, Vec<_>)| format!("{name}: violated: {promise} by {}", steps.join(", "));
        broken.extend(found.violated.iter().map(told));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Fails if some state of a setup leads to no leader.
fn always_leads_to_a_leader<M: Explored + Reach>(questions: Vec<Question<M>>) {
    for Question { name, setup } in questions {
        let began = Instant::now();
        let explored = explore(&setup);
        report(format!("model, {name}: {} states, {:.1} s", explored.states, began.elapsed().as_secs_f64()));
        assert!(explored.found.is_none(), "{name}: {:?}", explored.found);
    }
}

/// Says what a test has explored. What `println` prints in a test that passes is kept from the reader.
fn report(figures: impl Display) {
    stderr().write_all(format!("{figures}\n").as_bytes()).expect("somebody to read what was explored");
}
