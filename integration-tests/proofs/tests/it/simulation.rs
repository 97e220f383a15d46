//! The real elector and the real sessions in deterministic simulations.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use leaderelection_proofs::kit::{Campaign, Outcome, Simulation};
use leaderelection_proofs::sessions::simulation::Sessions;
use leaderelection_proofs::simulation::Layout;

use crate::report;

/// Seeds that alone have shown a change which no row names.
const FURTHER_SEEDS: [(&str, u64); 3] = [("--three-locks", 17), ("--three-locks", 19), ("--three-locks", 21_000_137)];

/// Runs seeds for so many hours, and each seed by which a row of the mutations shows that a promise can be broken.
fn keeps_every_promise<S: Simulation>(option: &str, simulation: &S, hours: f64) -> Outcome<S::Stats> {
    assert_eq!(simulation.hours(), hours);
    let outcome = Campaign::default().run(simulation);
    assert!(outcome.simulated.as_secs_f64() >= hours * 3600.0, "{outcome}");
    assert!(outcome.failed.is_none(), "{outcome}");
    let further = FURTHER_SEEDS.map(|(of, seed)| (of.to_owned(), seed));
    let named = seeds_of_mutations().into_iter().chain(further).filter(|(of, _)| of == option);
    let seeds: BTreeSet<u64> = named.map(|(_, seed)| seed).collect();
    for seed in &seeds {
        let violation = simulation.run(*seed, 0).violation;
        assert!(violation.is_none(), "seed {seed}: {violation:?}");
    }
    report(format!("simulate {option}: {outcome}; and of mutations {seeds:?}"));
    outcome
}

/// Returns the seeds that the rows of the mutations name, each with the option of its simulation.
fn seeds_of_mutations() -> Vec<(String, u64)> {
    let folder = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("mutations")).expect("a folder");
    let files = folder.map(|file| file.expect("a file").path());
    let tables = files.filter(|file| file.extension().is_some_and(|extension| extension == "toml"));
    let of_table = |file| {
        let table = fs::read_to_string(file).expect("a table");
        let after = |beginning: &str| table.lines().filter_map(|line| line.strip_prefix(beginning)).collect::<Vec<_>>();
        let option = match after("simulate = ")[..] {
            [] => String::new(),
            [words] => words.trim_matches(|mark| "[]\"".contains(mark)).replace("simulate\", \"", ""),
            _ => panic!("a table has two simulations"),
        };
        let seeds = after("seed = ").into_iter().map(|seed| (option.clone(), seed.parse().expect("a seed")));
        seeds.collect::<Vec<_>>()
    };
    tables.flat_map(of_table).collect()
}

#[test]
fn the_seed_of_each_mutation_belongs_to_a_simulation() {
    let seeds = seeds_of_mutations();
    assert!(seeds.len() > 10, "{seeds:?}");
    for (option, seed) in seeds {
        assert!(
            ["", "--sequenced", "--two-locks", "--three-locks", "--sessions"].contains(&&*option),
            "{option}: {seed}"
        );
    }
}

#[test]
fn every_promise_is_kept_for_40_simulated_hours() {
    let outcome = keeps_every_promise("", &Layout::OneObject, 40.0);
    // If no message reported them, none would be found to be false.
    assert!(outcome.stats.duplicates > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_10_simulated_hours_of_a_sequenced_lock() {
    let outcome = keeps_every_promise("--sequenced", &Layout::Sequenced, 10.0);
    assert!(outcome.stats.late_creations > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_10_simulated_hours_of_a_move() {
    let outcome = keeps_every_promise("--two-locks", &Layout::TwoLocks, 10.0);
    assert!(outcome.stats.jobs > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_10_simulated_hours_of_two_of_three_locks() {
    let outcome = keeps_every_promise("--three-locks", &Layout::ThreeLocks, 10.0);
    assert!(outcome.stats.jobs > 0 && outcome.stats.forgeries > 0, "{outcome}");
}

#[test]
fn every_promise_is_kept_for_10_simulated_hours_of_sessions() {
    keeps_every_promise("--sessions", &Sessions, 10.0);
}

#[test]
fn one_seed_is_one_history() {
    for layout in [Layout::OneObject, Layout::Sequenced, Layout::TwoLocks, Layout::ThreeLocks] {
        has_one_history(&layout, 2);
    }
    has_one_history(&Sessions, 1);
}

fn has_one_history(simulation: &impl Simulation, seeds: u64) {
    for seed in 0..seeds {
        let histories = [(); 2].map(|()| simulation.run(seed, usize::MAX).story);
        assert!(histories[0] == histories[1], "seed {seed}");
    }
}
