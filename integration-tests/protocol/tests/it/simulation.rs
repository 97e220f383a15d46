//! The real elector in the deterministic simulation.

use std::time::Duration;

use leaderelection_protocol_tests::simulation::{Campaign, run};

use crate::report;

#[test]
fn every_promise_is_kept_for_two_thousand_simulated_hours() {
    let hours = Duration::from_secs(2_000 * 3600);
    let outcome = Campaign { simulated: hours, time_limit: Duration::MAX, first_seed: 0, threads: None }.run();
    assert!(outcome.failed.is_none(), "{outcome}");
    report(format!("simulation: {outcome}"));
    // Were they never heard of, none would be found to be false.
    assert!(outcome.stats.clashes > 0, "{outcome}");
}

#[test]
fn one_seed_is_one_history() {
    for seed in 0..30 {
        let histories = [(); 3].map(|()| run(seed, None).fingerprint);
        assert!(histories.iter().all(|history| *history == histories[0]), "seed {seed}: {histories:x?}");
    }
}
