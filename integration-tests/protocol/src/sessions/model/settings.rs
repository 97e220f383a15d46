//! The setups that are explored.

use super::world::{Setup, Slow};

/// A setup of this model.
pub type Question = crate::exploring::Question<Setup>;

/// Returns the setups in which a test run checks every promise, and nothing else.
pub fn standard() -> Vec<Question> {
    vec![
        question("sessions: late and lost writes to a lock", Setup { losses: true, late_writes: 1, ..one(LOCKS) }),
        question(
            "sessions: two locks, late and lost writes",
            Setup { locks: 2, losses: true, late_writes: 1, last_token: 0, ..one(LOCKS) },
        ),
        question(
            "sessions: late and lost writes to a session",
            Setup { losses: true, late_writes: 1, last_token: 0, ..one(OWN) },
        ),
        question("sessions: two locks, late writes to both kinds", late_to_both()),
        question("sessions: the next session", Setup { sessions: 2, ..one(LOCKS) }),
        question("sessions: slow ends of sessions", one(Slow { peers: true, ..OWN })),
        question("sessions: slow reads", one(Slow { reads: true, ..Slow::default() })),
        question("sessions: steps down", Setup { step_downs: true, ..one(LOCKS) }),
        question(
            "sessions: work that ends late",
            Setup { late_work: true, step_downs: true, stops: true, ..one(Slow::default()) },
        ),
    ]
}

/// Returns the setups in which a test run checks every promise, and that every process can always come to lead every lock.
pub fn electable() -> Vec<Question> {
    vec![
        question("sessions: crashes and deletions", deletions()),
        question("sessions: lost writes", Setup { losses: true, ..one(LOCKS) }),
        question("sessions: listings", Setup { locks: 2, lists: true, last_token: 0, ..one(LOCKS) }),
    ]
}

/// Returns larger setups.
pub fn larger() -> Vec<Question> {
    vec![
        question(
            "sessions: two locks, late writes to both kinds, crashes and deletions",
            Setup { crashes: true, delete_after: Some(2), ..late_to_both() },
        ),
        question(
            "sessions: crashes and late writes to a lock",
            Setup { crashes: true, sessions: 2, late_writes: 1, ..one(LOCKS) },
        ),
        question(
            "sessions: the next session, and late writes of the last",
            Setup { losses: true, late_writes: 1, sessions: 2, ..one(LOCKS) },
        ),
        question("sessions: two locks, steps down", Setup { locks: 2, step_downs: true, ..one(LOCKS) }),
        question(
            "sessions: late creations and deletions",
            Setup { losses: true, late_writes: 1, sessions: 2, delete_after: Some(2), last_token: 0, ..one(OWN) },
        ),
        question("sessions: late writes to both", Setup { losses: true, late_writes: 2, last_token: 0, ..one(BOTH) }),
    ]
}

const LOCKS: Slow = Slow { reads: false, own: false, peers: false, locks: true };
const BOTH: Slow = Slow { locks: true, ..OWN };
const OWN: Slow = Slow { reads: false, own: true, peers: false, locks: false };

fn deletions() -> Setup {
    Setup { crashes: true, sessions: 2, delete_after: Some(2), ..one(Slow::default()) }
}

fn late_to_both() -> Setup {
    Setup { locks: 2, sessions: 2, losses: true, late_writes: 2, at_once_or_late: true, ..one(BOTH) }
}

fn question(name: &'static str, setup: Setup) -> Question {
    Question { name, setup }
}

/// Returns a setup of two processes and one lock in which nothing fails.
fn one(slow: Slow) -> Setup {
    Setup {
        nodes: vec!["a", "b"],
        locks: 1,
        timings: [4, 3, 1],
        look_around: 2,
        delete_after: None,
        at_a_time: 1,
        lists: false,
        last_token: 1,
        sessions: 1,
        late_writes: 0,
        slow,
        at_once_or_late: false,
        losses: false,
        crashes: false,
        stops: false,
        step_downs: false,
        late_work: false,
    }
}
