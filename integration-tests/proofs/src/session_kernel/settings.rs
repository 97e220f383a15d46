//! The explored setups: those of every test run, and those that are explored on demand.

use super::beginnings::{
    a_lock_that_has_changed_hands, a_lock_that_was_taken_over, a_session_that_was_listed, a_session_that_was_read,
};
use super::setup::{Setup, Slow};
use crate::kit::{Question, questions};

/// Returns the setups of every test run. An exact margin, L/D equal to the ratio of the clocks, finds a date that is off by one.
pub fn questions() -> Vec<Question<Setup>> {
    questions! {
        new "kernel of sessions: late claims": one(LOCKS), late_writes: 1;
        new "kernel of sessions: two locks": one(QUICK), locks: 2;
        new "kernel of sessions: late writes to sessions": one(OWN), late_writes: 1, last_token: 0;
        new "kernel of sessions: late ends": one(ENDS), late_writes: 1;
        new "kernel of sessions: late writes to both": one(BOTH), last_token: 0;
        new "kernel of sessions: unequal leases": one(LOCKS), other_lease: Some(4);
        new "kernel of sessions: the next session": one(QUICK), sessions: 2, last_token: 0;
        new "kernel of sessions: crashes": one(QUICK), sessions: 2, crashes: true, last_token: 0;
        new "kernel of sessions: stops": one(QUICK), stops: true;
        new "kernel of sessions: stops and late claims": one(LOCKS), stops: true, late_writes: 1, last_token: 0;
        new "kernel of sessions: late work": one(QUICK), stops: true, late_work: true;
        new "kernel of sessions: slow reads": one(READS), last_token: 0;
        new "kernel of sessions: stale reads": one(QUICK), stale_reads: 1;
        new "kernel of sessions: reads two writes late": one(QUICK), rates: vec![1], stops: true, stale_reads: 2;
        new "kernel of sessions: listings": one(QUICK), lists: true, last_token: 0;
        new "kernel of sessions: messages": one(QUICK), hints: true;
        new "kernel of sessions: drift": drifting(LOCKS);
        new "kernel of sessions: deletions": one(OWN), deletes: true, last_token: 0;
        new "kernel of sessions: a session that somebody deletes": one(LOCKS), session_deletion: true;
        new "kernel of sessions: unequal leases, and a session that somebody deletes":
            one(QUICK), other_lease: Some(4), session_deletion: true, last_token: 0;
        new "kernel of sessions: unequal leases, and a session that was read, which somebody deletes":
            a_session_that_was_read(one(QUICK), 4), session_deletion: true, last_token: 0;
        new "kernel of sessions: a session that somebody spoils": one(QUICK), spoils: true;
        new "kernel of sessions: a lock that somebody deletes":
            one(QUICK), poll_pause: Some(0), lock_deletion: true, failed_reads: true, last_token: 0;
        new "kernel of sessions: a lock that somebody deletes, and a late poll":
            one(QUICK), poll_pause: Some(0), lock_deletion: true, late_poll: true, last_token: 0;
        new "kernel of sessions: a lock that somebody deletes, and a late listing":
            one(QUICK), lease: 1, deadline: 1, poll_pause: Some(0), lock_deletion: true, late_listing: true, last_token: 0;
        new "kernel of sessions: a plain lease": one(QUICK), plain: true;
        new "kernel of sessions: two locks of one process": one(QUICK), rates: vec![1], locks: 2, stops: true, late_work: true;
        new "kernel of sessions: forgotten locks": one(QUICK), stops: true, forgets: true, last_token: 0;
        new "kernel of sessions: clocks that run as they like": lawless();
    }
}

/// Returns the larger setups.
pub fn larger() -> Vec<Question<Setup>> {
    questions! {
        new "kernel of sessions: two locks, late claims": one(LOCKS), locks: 2, late_writes: 1, last_token: 0;
        new "kernel of sessions: slow reads, stale and late": one(READS), stale_reads: 1, last_token: 0;
        new "kernel of sessions: late work and the next session": one(QUICK), sessions: 2, late_work: true;
        new "kernel of sessions: the next session, and late claims": one(LOCKS), sessions: 2, late_writes: 1, last_token: 0;
        new "kernel of sessions: rare polls, and late work":
            one(QUICK), poll_pause: Some(0), late_work: true, lists: true, last_token: 0;
        new "kernel of sessions: drift and listings": drifting(QUICK), lists: true, last_token: 0;
        new "kernel of sessions: a creation delivered again": one(OWN), deletes: true, lists: true, last_token: 0;
        new "kernel of sessions: a session that somebody spoils, and slow reads": one(READS), spoils: true, last_token: 0;
        new "kernel of sessions: unequal leases, and a session that was listed, which somebody deletes":
            a_session_that_was_listed(one(QUICK), 4), session_deletion: true, last_token: 0;
        new "kernel of sessions: unequal leases, and a session that was listed, which somebody spoils":
            a_session_that_was_listed(one(QUICK), 4), spoils: true, last_token: 0;
        new "kernel of sessions: the next session, and a lock that somebody deletes":
            one(QUICK), sessions: 2, poll_pause: Some(0), lock_deletion: true;
        new "kernel of sessions: unequal leases, and a lock that somebody deletes":
            one(QUICK), other_lease: Some(4), poll_pause: Some(0), lock_deletion: true;
        new "kernel of sessions: a lock that has changed hands, and somebody deletes": a_lock_that_has_changed_hands(three());
        new "kernel of sessions: a lock that was taken over, and somebody deletes":
            a_lock_that_was_taken_over(one(QUICK)), sessions: 2, poll_pause: Some(0), lock_deletion: true;
        new "kernel of sessions: a lock that somebody deletes, and slow reads":
            one(READS), poll_pause: Some(0), lock_deletion: true, last_token: 0;
        new "kernel of sessions: a lock that somebody deletes, and drift":
            drifting(QUICK), poll_pause: Some(8), lock_deletion: true, last_token: 0;
        new "kernel of sessions: a lock that somebody deletes, and stops":
            one(QUICK), poll_pause: Some(0), stops: true, lock_deletion: true;
        new "kernel of sessions: a lock that somebody deletes, and listings":
            one(QUICK), poll_pause: Some(0), lists: true, lock_deletion: true, last_token: 0;
    }
}

/// Returns setups outside what the rules depend on, and the promise that each breaks: clocks outside the bound, and a lock that is
/// forgotten where a read may show what was replaced before.
pub fn broken() -> Vec<(Question<Setup>, &'static str)> {
    let forgotten = Setup { rates: vec![1], stops: true, forgets: true, stale_reads: 1, ..one(QUICK) };
    vec![
        (Question::new("sessions outside the bound on clocks", Setup { lawless: false, ..lawless() }), "no erasure"),
        (Question::new("a lock that is forgotten, and a stale read of it", forgotten), "no unearned term"),
    ]
}

const QUICK: Slow = Slow { reads: false, own: false, ends: false, locks: false };
const READS: Slow = Slow { reads: true, ..QUICK };
const OWN: Slow = Slow { own: true, ..QUICK };
const ENDS: Slow = Slow { ends: true, ..QUICK };
const LOCKS: Slow = Slow { locks: true, ..QUICK };
const BOTH: Slow = Slow { locks: true, ..OWN };

/// Two processes with good clocks, one lock, and two terms.
fn one(slow: Slow) -> Setup {
    Setup { rates: vec![1, 1], locks: 1, lease: 2, deadline: 2, sessions: 1, last_token: 1, slow, ..Setup::default() }
}

/// Three processes, of which the last has a longer lease.
fn three() -> Setup {
    Setup { rates: vec![1, 1, 1], other_lease: Some(4), poll_pause: Some(0), lock_deletion: true, ..one(QUICK) }
}

fn drifting(slow: Slow) -> Setup {
    Setup { rates: vec![3, 2], lease: 6, deadline: 4, ..one(slow) }
}

fn lawless() -> Setup {
    Setup { rates: vec![3, 1], lawless: true, ..one(LOCKS) }
}
