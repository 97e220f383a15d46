//! The state machine, explored: every history of a few candidates, however long.

use leaderelection_integration_tests::model::{Setup, explore};
use stateright::{Checker, HasDiscoveries, Model};

fn two() -> Setup {
    Setup {
        nodes: vec![("a", 1), ("b", 1)],
        lease: 3,
        renew: 2,
        retry: 1,
        last_token: 1,
        late_writes: 1,
        instant_reads: true,
        crashes: false,
        stops: false,
        releases: true,
        lies: false,
    }
}

/// Explores everything, and fails with the shortest way to what should not be.
fn check(name: &str, setup: &Setup) {
    let checker = setup.clone().checker().threads(2).spawn_bfs().join();
    println!("{name}: {} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

#[test]
fn two_candidates_with_late_and_lost_requests() {
    check("late and lost requests", &two());
    check("slow reads", &Setup { instant_reads: false, last_token: 0, ..two() });
    check("wrong answers", &Setup { lies: true, last_token: 0, ..two() });
}

#[test]
fn two_candidates_that_crash_and_start_again() {
    check("crashes", &Setup { crashes: true, late_writes: 0, ..two() });
    check("crashes with late requests", &Setup { crashes: true, last_token: 0, ..two() });
}

#[test]
fn two_candidates_that_stop_and_release() {
    check("stops", &Setup { stops: true, last_token: 0, late_writes: 0, ..two() });
    check("stops with late requests", &Setup { stops: true, last_token: 0, ..two() });
}

#[test]
fn two_processes_that_share_an_identity() {
    check("shared identity", &Setup { nodes: vec![("a", 1), ("a", 1)], late_writes: 0, ..two() });
}

#[test]
fn clocks_that_drift_as_far_as_they_may() {
    let nodes = vec![("fast", 3), ("slow", 2)];
    check("drift", &Setup { nodes, lease: 6, renew: 4, retry: 2, late_writes: 0, ..two() });
}

/// Lease / deadline against fastest / slowest, on both sides of the line and on it.
#[test]
fn exclusion_holds_exactly_where_the_formula_says() {
    let mut outside = 0;
    for (fast, slow) in [(1, 1), (2, 1), (3, 2)] {
        for lease in [fast, 2 * fast] {
            for renew in 1..=lease + 1 {
                let nodes = vec![("fast", fast), ("slow", slow)];
                let setup = Setup { nodes, lease, renew, retry: 1, late_writes: 0, ..two() };
                let holds = lease * slow >= renew * fast;
                let checker = setup.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
                let found = checker.discovery("exclusion").is_none();
                assert_eq!(found, holds, "lease {lease}, deadline {renew}, clocks {fast} : {slow}");
                outside += usize::from(!holds);
            }
        }
    }
    assert!(outside > 5, "only {outside} settings outside the bound");
}

#[test]
fn a_leader_can_be_reached_from_every_state() {
    let found = explore(&Setup { crashes: true, late_writes: 0, ..two() });
    println!("always electable: {} states", found.states);
    assert_eq!(found.stuck, None);
}
