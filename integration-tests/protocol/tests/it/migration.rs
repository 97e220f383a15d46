//! The move from one lock to another, explored: every interleaving of two processes and two locks.

use leaderelection_protocol_tests::migration::{broken, standard};

use crate::{keeps_every_promise, report};

#[test]
fn every_interleaving_of_a_move_keeps_every_promise() {
    keeps_every_promise("migration", standard());
}

/// Rule M8 is necessary: each of its two halves, in either direction.
#[test]
fn a_rollout_that_does_not_wait_breaks_a_promise() {
    for (question, promise) in broken() {
        let (name, found) = (question.name, question.explore(None));
        let breach = found.violated.iter().find(|(broken, _)| *broken == promise);
        let (_, steps) = breach.unwrap_or_else(|| panic!("{name}: {promise} is kept"));
        report(format!("migration, {name}: breaks {promise:?} after {} steps", steps.len()));
    }
}
