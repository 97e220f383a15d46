//! The setups that are explored.

use super::world::{Setup, Slow};

/// A setup with a name.
#[derive(Clone, Debug)]
pub struct Question {
    /// The name.
    pub name: &'static str,
    /// The setup.
    pub setup: Setup,
}

/// Returns the setups of the test run, in each of which every promise is checked.
pub fn standard() -> Vec<Question> {
    vec![
        question("sessions: two locks", two()),
    ]
}

/// Returns the setups of the test run in which every process can always come to lead every lock.
pub fn electable() -> Vec<Question> {
    vec![]
}

/// Returns larger setups.
pub fn larger() -> Vec<Question> {
    vec![]
}

fn question(name: &'static str, setup: Setup) -> Question {
    Question { name, setup }
}

/// Returns a setup of two processes and two locks in which nothing fails.
fn two() -> Setup {
    Setup {
        nodes: vec!["a", "b"],
        locks: 2,
        timings: [4, 3, 1],
        look_around: 2,
        delete_after: None,
        at_a_time: 1,
        lists: false,
        last_token: 1,
        sessions: 1,
        late_writes: 0,
        slow: Slow::default(),
        losses: false,
        crashes: false,
        stops: false,
        step_downs: false,
        late_work: false,
    }
}
