//! The move from one lock to another, explored: every interleaving of two processes and two locks.

use leaderelection_protocol_tests::migration::{Question, broken, standard};
use stateright::{Checker, HasDiscoveries, Model};

use crate::{assert_every_promise_is_kept, report};

#[test]
fn every_interleaving_of_a_move_keeps_every_promise() {
    assert_every_promise_is_kept("migration", standard());
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
