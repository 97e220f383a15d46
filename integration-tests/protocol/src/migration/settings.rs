//! The explored setups.

use super::world::{Direction, Phase, Setup};

/// A setup of this model.
pub type Question = crate::exploring::Question<Setup>;

/// Returns the setups in which a test run checks every promise.
pub fn standard() -> Vec<Question> {
    use Phase::{Both, New, Old};
    vec![
        question(
            "one that holds both",
            Setup { phases: vec![Both], leases: vec![3], faults: 3, crashes: 0, horizon: 3, ..faulty() },
        ),
        question("two that hold both", Setup { phases: vec![Both, Both], crashes: 0, horizon: 6, ..faulty() }),
        question(
            "two that hold both, and a crash",
            Setup { phases: vec![Both, Both], any_order: true, faults: 0, ..faulty() },
        ),
        question("the old lock and both", Setup { phases: vec![Old, Both], ..faulty() }),
        question("both and the new lock", Setup { phases: vec![Both, New], tokens: [Some(2), Some(3)], ..faulty() }),
        question("unequal leases", Setup { phases: vec![Old, Both], leases: vec![5, 3], ..faulty() }),
        question("the move", rolling(Old, Direction::Forward)),
        question(
            "the move, and a crash",
            Setup { phases: vec![Both, Old], crashes: 1, ..rolling(Old, Direction::Forward) },
        ),
        question("the way back", Setup { tokens: [Some(2), Some(6)], ..rolling(New, Direction::Back) }),
    ]
}

/// Returns the setups in which the rule of the rollouts is broken, and the promise that each of them breaks.
pub fn broken() -> Vec<(Question, &'static str)> {
    let forward = || rolling(Phase::Old, Direction::Forward);
    let back = || Setup { tokens: [Some(2), Some(6)], ..rolling(Phase::New, Direction::Back) };
    vec![
        (question("no leader of both is waited for", Setup { hasty: true, ..forward() }), "tokens rise"),
        (question("no leader of both is waited for on the way back", Setup { hasty: true, ..back() }), "tokens rise"),
        (question("the first and the last phase together", Setup { all_at_once: true, ..forward() }), "one leader"),
        (question("the same on the way back", Setup { all_at_once: true, ..back() }), "one leader"),
    ]
}

fn question(name: &'static str, setup: Setup) -> Question {
    Question { name, setup }
}

fn faulty() -> Setup {
    Setup {
        phases: Vec::new(),
        leases: vec![3, 3],
        deadline: 2,
        tokens: [Some(2), None],
        rolls: None,
        hasty: false,
        all_at_once: false,
        any_order: false,
        faults: 1,
        crashes: 1,
        horizon: 7,
    }
}

fn rolling(from: Phase, direction: Direction) -> Setup {
    Setup { phases: vec![from, from], rolls: Some(direction), faults: 0, crashes: 0, horizon: 4, ..faulty() }
}
