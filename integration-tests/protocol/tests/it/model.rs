//! The state machine, explored: every history of a few candidates, however long.

use leaderelection_protocol_tests::model::{Question, Setup, explore, standard};
use stateright::{Checker, HasDiscoveries, Model};

/// The setup of one of the standard questions.
fn setup(name: &str) -> Setup {
    standard().into_iter().find(|question| question.name == name).expect("a standard question").setup
}

/// Fails with the shortest way to what should not be.
#[test]
fn every_history_keeps_every_promise() {
    for Question { name, setup } in standard() {
        let checker = setup.checker().threads(2).spawn_bfs().join();
        println!("{name}: {} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
        checker.assert_properties();
    }
}

#[test]
fn a_leader_can_be_reached_from_every_state() {
    for name in ["crashes", "wrong answers", "stops and releases", "a shared identity", "a transfer"] {
        let found = explore(&setup(name));
        println!("always electable, {name}: {} states", found.states);
        assert_eq!(found.stuck, None, "{name}");
    }
}

/// Lease / deadline against fastest / slowest, on both sides of the line and on it.
#[test]
fn exclusion_holds_exactly_where_the_formula_says() {
    let mut outside = 0;
    for (fast, slow) in [(1, 1), (2, 1), (3, 2)] {
        for lease in [fast, 2 * fast] {
            for renew in 1..=lease + 1 {
                let nodes = vec![("fast", fast), ("slow", slow)];
                let setup = Setup { nodes, lease, renew, ..setup("crashes") };
                let setup = Setup { crashes: false, ..setup };
                let holds = lease * slow >= renew * fast;
                let checker = setup.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
                // A live lease that is taken is noticed when the write lands, before anybody leads by it.
                let kept = ["exclusion", "no erasure"].iter().all(|name| checker.discovery(name).is_none());
                assert_eq!(kept, holds, "lease {lease}, deadline {renew}, clocks {fast} : {slow}");
                outside += usize::from(!holds);
            }
        }
    }
    assert!(outside > 5, "only {outside} settings outside the bound");
}
