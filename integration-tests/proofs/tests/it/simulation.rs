//! The real elector in the deterministic simulation.

use std::time::Duration;

use leaderelection_proofs::simulation::{Campaign, Layout, Outcome, run};

use crate::report;

fn simulate(layout: Layout, hours: u64) -> Outcome {
    let simulated = Duration::from_secs(hours * 3600);
    Campaign { layout, simulated, time_limit: Duration::MAX, first_seed: 0, conditions: &[], threads: None }.run()
}

#[test]
fn every_promise_is_kept_for_1000_simulated_hours() {
    let outcome = simulate(Layout::OneObject, 1_000);
    assert!(outcome.failed.is_none(), "{outcome}");
    report(format!("simulation: {outcome}"));
    // Were they never heard of, none would be found to be false.
    assert!(outcome.stats.clashes > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_100_simulated_hours_of_a_sequenced_lock() {
    let outcome = simulate(Layout::Sequenced, 100);
    assert!(outcome.failed.is_none(), "{outcome}");
    report(format!("simulation of a sequenced lock: {outcome}"));
    assert!(outcome.stats.late_creations > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_100_simulated_hours_of_a_move() {
    let outcome = simulate(Layout::TwoLocks, 100);
    assert!(outcome.failed.is_none(), "{outcome}");
    report(format!("simulation of a move: {outcome}"));
    assert!(outcome.stats.jobs > 0, "{outcome}");
}

#[test]
fn one_seed_is_one_history() {
    for (layout, seeds) in [(Layout::OneObject, 0..30), (Layout::Sequenced, 0..10), (Layout::TwoLocks, 0..10)] {
        for seed in seeds {
            let histories = [(); 3].map(|()| run(layout, seed, None).fingerprint);
            assert!(histories.iter().all(|history| *history == histories[0]), "seed {seed}: {histories:x?}");
        }
    }
}
