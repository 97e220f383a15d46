//! The real elector and the real sessions in deterministic simulations.

use leaderelection_proofs::kit::{Campaign, Outcome, Simulation};
use leaderelection_proofs::sessions::simulation::Sessions;
use leaderelection_proofs::simulation::Layout;

use crate::report;

fn keeps_every_promise<S: Simulation>(name: &str, simulation: &S, hours: u64) -> Outcome<S::Stats> {
    let outcome = Campaign::default().run(simulation);
    assert!(outcome.simulated.as_secs() >= hours * 3600, "{outcome}");
    assert!(outcome.failed.is_none(), "{outcome}");
    report(format!("{name}: {outcome}"));
    outcome
}

#[test]
fn every_promise_is_kept_for_400_simulated_hours() {
    let outcome = keeps_every_promise("simulation", &Layout::OneObject, 400);
    // Were they never heard of, none would be found to be false.
    assert!(outcome.stats.clashes > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_100_simulated_hours_of_a_sequenced_lock() {
    let outcome = keeps_every_promise("simulation of a sequenced lock", &Layout::Sequenced, 100);
    assert!(outcome.stats.late_creations > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_100_simulated_hours_of_a_move() {
    let outcome = keeps_every_promise("simulation of a move", &Layout::TwoLocks, 100);
    assert!(outcome.stats.jobs > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_100_simulated_hours_of_two_of_three_locks() {
    let outcome = keeps_every_promise("simulation of two of three locks", &Layout::ThreeLocks, 100);
    assert!(outcome.stats.jobs > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_100_simulated_hours_of_sessions() {
    keeps_every_promise("simulation of sessions", &Sessions, 100);
}

#[test]
fn one_seed_is_one_history() {
    has_one_history(&Layout::OneObject, 30);
    has_one_history(&Layout::Sequenced, 10);
    has_one_history(&Layout::TwoLocks, 10);
    has_one_history(&Layout::ThreeLocks, 10);
    has_one_history(&Sessions, 5);
}

fn has_one_history(simulation: &impl Simulation, seeds: u64) {
    for seed in 0..seeds {
        let histories = [(); 3].map(|()| simulation.run(seed, usize::MAX).story);
        assert!(histories.iter().all(|history| *history == histories[0]), "seed {seed}");
    }
}
