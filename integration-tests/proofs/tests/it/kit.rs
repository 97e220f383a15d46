//! The exploration itself, on a model whose answers are known: a counter of a ring of ten, from 0.

use leaderelection_proofs::kit::{Goal, Ids, Model, Mover, Question, Sight, fingerprint};

#[derive(Default)]
struct Ring {
    /// The number that is forbidden.
    forbidden: Option<u8>,
    /// The number that ought to be seen.
    expected: u8,
    /// The number from which there is no step.
    trap: Option<u8>,
}

impl Model for Ring {
    type World = u8;
    type Action = u8;

    fn begin(&self) -> u8 {
        0
    }

    fn actions(&self, world: &u8, actions: &mut Vec<u8>) {
        if self.trap != Some(*world) {
            actions.extend([1, 3]);
        }
    }

    fn act(&self, world: &mut u8, action: u8) {
        *world = (*world + action) % 10;
    }

    fn is_within(&self, _: &u8) -> bool {
        true
    }

    fn broken(&self, world: &u8) -> Option<&'static str> {
        (self.forbidden == Some(*world)).then_some("not there")
    }

    fn sights(&self) -> Vec<Option<Sight<Self>>> {
        vec![Sight::new("the expected", |ring: &Self, world| *world == ring.expected)]
    }

    fn goals(&self) -> Vec<Goal> {
        vec![Goal { node: 0, lock: 0 }]
    }

    fn is_reached(&self, world: &u8, _: Goal) -> bool {
        *world == 9
    }

    fn mover(&self, action: &u8) -> Mover {
        if *action == 1 { Mover::Node(0) } else { Mover::Other }
    }
}

#[test]
fn every_state_is_visited_once() {
    let found = Question::electable("all", Ring::default()).explore(usize::MAX);
    assert_eq!((found.states, found.is_well()), (10, true), "{found}");
}

#[test]
fn a_breach_is_shown_with_a_shortest_way_to_it() {
    let ring = Ring { forbidden: Some(7), ..Ring::default() };
    let broken = Question::new("a breach", ring).explore(usize::MAX).broken.expect("a breach");
    assert_eq!((broken.promise, broken.steps.len()), ("not there", 3), "{:?}", broken.steps);
}

#[test]
fn what_no_history_shows_is_named() {
    let found = Question::new("never", Ring { expected: 10, ..Ring::default() }).explore(usize::MAX);
    assert_eq!((found.broken.is_none(), found.never.as_slice()), (true, ["the expected"].as_slice()));
}

#[test]
fn a_state_without_a_way_to_the_goal_is_found() {
    let ring = || Ring { trap: Some(6), ..Ring::default() };
    assert!(Question::new("not asked", ring()).explore(usize::MAX).is_well());
    let broken = Question::electable("a trap", ring()).explore(usize::MAX).broken.expect("a trap");
    assert_eq!(broken.promise, "always electable");
}

#[test]
fn states_that_differ_in_the_names_of_their_ids_only_are_one_state() {
    let mut ids = Ids::default();
    let [a, b, c] = [(); 3].map(|()| ids.unused());
    let of = |first: &str, number: u8, others: [&str; 2]| fingerprint(&(first, number, others));
    assert_eq!(of(&a, 1, [&b, &a]), of(&c, 1, [&a, &c]));
    assert_ne!(of(&a, 1, [&b, &a]), of(&a, 1, [&b, &b]));
    assert_ne!(of(&a, 1, [&b, &a]), of(&a, 2, [&b, &a]));
    assert_ne!(of(&a, 1, [&b, &a]), of("1", 1, [&b, "1"]));
    // The version of two locks has two ids in one text.
    assert_eq!(fingerprint(&format!("[{a:?},{b:?}]")), fingerprint(&format!("[{b:?},{c:?}]")));
    assert_ne!(fingerprint(&format!("[{a:?},{b:?}]")), fingerprint(&format!("[{a:?},{a:?}]")));
}
