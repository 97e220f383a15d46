//! The real elector in the deterministic simulation.

use std::time::Duration;

use leaderelection_protocol_tests::simulation::{Campaign, run};

#[test]
fn every_promise_is_kept_for_two_thousand_simulated_hours() {
    let hours = Duration::from_secs(2_000 * 3600);
    let outcome = Campaign { simulated: hours, time_limit: Duration::MAX, first_seed: 0, threads: None }.run();
    println!("{outcome}");
    assert!(outcome.failed.is_none(), "{outcome}");
}

#[test]
fn one_seed_is_one_history() {
    for seed in 0..30 {
        let histories = [(); 3].map(|()| run(seed, None).fingerprint);
        assert!(histories.iter().all(|history| *history == histories[0]), "seed {seed}: {histories:x?}");
    }
}
