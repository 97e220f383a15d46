//! The explored setups.

use super::setup::{Setup, Slow};
use crate::kit::Question;

/// Returns the setups of every test run.
pub fn questions() -> Vec<Question<Setup>> {
    let (question, electable) = (Question::new, Question::electable);
    vec![
        question("sessions: late and lost writes to a lock", Setup { losses: true, late_writes: 1, ..one(LOCKS) }),
        question("sessions: two locks, late writes to both kinds", late_to_both()),
        question("sessions: the next session", Setup { sessions: 2, ..one(LOCKS) }),
        question("sessions: slow ends of sessions", one(Slow { peers: true, ..OWN })),
        question("sessions: slow reads", one(Slow { reads: true, ..Slow::default() })),
        question("sessions: steps down", Setup { step_downs: true, ..one(LOCKS) }),
        question(
            "sessions: work that ends late",
            Setup { late_work: true, step_downs: true, stops: true, ..one(Slow::default()) },
        ),
        question("sessions: words", Setup { words: 2, last_token: 0, ..one(Slow::default()) }),
        electable(
            "sessions: words, and crashes",
            Setup { words: 2, crashes: true, last_token: 0, ..one(Slow::default()) },
        ),
        electable("sessions: crashes and deletions", deletions()),
        electable("sessions: lost writes", Setup { losses: true, ..one(LOCKS) }),
        electable("sessions: listings", Setup { locks: 2, lists: true, last_token: 0, ..one(LOCKS) }),
    ]
}

/// Returns the larger setups.
pub fn larger() -> Vec<Question<Setup>> {
    let question = Question::new;
    vec![
        question(
            "sessions: late and lost writes to a session",
            Setup { losses: true, late_writes: 1, last_token: 0, ..one(OWN) },
        ),
        question(
            "sessions: two locks, late and lost writes",
            Setup { locks: 2, losses: true, late_writes: 1, last_token: 0, ..one(LOCKS) },
        ),
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
        question("sessions: words about slow writes", Setup { words: 1, last_token: 0, ..one(OWN) }),
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

/// Returns a setup of two processes and one lock in which nothing fails.
fn one(slow: Slow) -> Setup {
    Setup {
        nodes: vec!["a", "b"],
        locks: 1,
        timings: [4, 3, 1],
        look_around: 2,
        at_a_time: 1,
        last_token: 1,
        sessions: 1,
        slow,
        ..Setup::default()
    }
}
