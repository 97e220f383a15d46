//! The explored setups.

use super::setup::{Setup, Slow};
use crate::kit::{Question, questions};

/// Returns the setups of every test run.
pub fn questions() -> Vec<Question<Setup>> {
    questions! {
        new "sessions: late and lost writes to a lock": one(LOCKS), losses: true, late_writes: 1;
        new "sessions: two locks, late writes to both kinds": late_to_both(), last_token: 0;
        new "sessions: the next session": one(LOCKS), sessions: 2;
        new "sessions: slow ends of sessions": one(Slow { peers: true, ..OWN });
        new "sessions: steps down": one(LOCKS), step_downs: true;
        new "sessions: work that ends late": one(Slow::default()), late_work: true, step_downs: true, stops: true;
        new "sessions: messages": one(Slow::default()), messages: 2, last_token: 0;
        electable "sessions: messages, and crashes": one(Slow::default()), messages: 1, crashes: true, last_token: 0;
        electable "sessions: crashes and deletions": deletions();
        electable "sessions: lost writes": one(LOCKS), losses: true;
        electable "sessions: one that may not be read": one(LOCKS), denied: Some("x1"), losses: true, last_token: 0;
        new "sessions: a leader that may not be read": one(LOCKS), denied: Some("a1");
        electable "sessions: listings": one(LOCKS), locks: 2, lists: true, last_token: 0;
    }
}

/// Returns the larger setups.
pub fn larger() -> Vec<Question<Setup>> {
    questions! {
        new "sessions: slow reads": one(Slow { reads: true, ..Slow::default() });
        new "sessions: late and lost writes to a session": one(OWN), losses: true, late_writes: 1, last_token: 0;
        new "sessions: two locks, late writes to both kinds, two terms": late_to_both();
        electable "sessions: more messages, and crashes": one(Slow::default()), messages: 2, crashes: true, last_token: 0;
        new "sessions: two locks, late and lost writes":
            one(LOCKS), locks: 2, losses: true, late_writes: 1, last_token: 0;
        new "sessions: two locks, late writes to both kinds, crashes and deletions":
            late_to_both(), crashes: true, delete_after: Some(2);
        new "sessions: crashes and late writes to a lock": one(LOCKS), crashes: true, sessions: 2, late_writes: 1;
        new "sessions: the next session, and late writes of the last":
            one(LOCKS), losses: true, late_writes: 1, sessions: 2;
        new "sessions: messages about slow writes": one(OWN), messages: 1, last_token: 0;
        new "sessions: two locks, steps down": one(LOCKS), locks: 2, step_downs: true;
        new "sessions: late creations and deletions":
            one(OWN), losses: true, late_writes: 1, sessions: 2, delete_after: Some(2), last_token: 0;
        new "sessions: late writes to both": one(BOTH), losses: true, late_writes: 2, last_token: 0;
    }
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
        scan_interval: 2,
        max_in_flight: 1,
        last_token: 1,
        sessions: 1,
        slow,
        ..Setup::default()
    }
}
