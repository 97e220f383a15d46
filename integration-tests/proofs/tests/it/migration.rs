//! The move from one lock to another, explored: every interleaving of two processes and two locks.

use leaderelection_proofs::kit::Ask;
use leaderelection_proofs::migration::broken;

use crate::{keeps_every_promise, report};

#[test]
fn every_interleaving_of_a_move_keeps_every_promise() {
    keeps_every_promise("migration");
}

/// Rule M8 is necessary: each of its two halves, in either direction.
#[test]
fn a_rollout_that_does_not_wait_breaks_a_promise() {
    for (question, promise) in broken() {
        let found = question.explore(usize::MAX).broken.unwrap_or_else(|| panic!("{}: all is kept", question.name));
        assert_eq!(found.promise, promise, "{}: {}", question.name, found.steps.join(", "));
        report(format!("migration, {}: breaks {promise:?} after {} steps", question.name, found.steps.len()));
    }
}
