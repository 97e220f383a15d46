//! The explored setups: those of every test run, and those that are explored on demand.

use super::beginnings::{
    a_late_renewal, a_leader, a_leader_beside_half_a_write, a_lease_won_too_late, a_part_that_was_rolled_back,
    a_release_in_flight,
};
use super::setup::Setup;
use crate::kit::{Question, questions};

/// Returns the setups of every test run.
pub fn questions() -> Vec<Question<Setup>> {
    questions! {
        new "two of three": any(3, most());
        new "two of three, and a fault": any(2, most()), faults: 1;
        new "two of three in the background": any(3, most()), background: true;
        new "two of three, and a request": any(2, other(most())), requests: 1;
        new "two of three with ages": a_lease_won_too_late(any(3, most())), ages: true;
        new "two of three with ages, of which one has none":
            a_lease_won_too_late(any(3, most())), ages: true, ageless: Some(1);
        new "two of three in the background with other tokens": any(3, other(most())), background: true;
        new "two of three, a leader, and a fault": a_leader(most()), writes: Some(3), faults: 1;
        new "two of three, a leader beside half a write, and a crash": a_leader_beside_half_a_write(any(3, most())), crashes: 1;
        new "two of three, a leader, and another term": a_leader(any(3, most())), gives_up: true, last_token: 1;
        new "two of three for a job": a_leader(job()), writes: Some(4);
        new "two of three for a job, and a late renewal": a_late_renewal(job()), writes: Some(4);
        new "two of three for a job, and a part that was rolled back":
            a_part_that_was_rolled_back(job()), tokens: vec![0, 0, 0], last_token: 1, writes: Some(4), faults: 2;
        new "two of three for a job, and a release in flight": a_release_in_flight(job()), plain: true, writes: Some(3), faults: 1;
        new "all of three": any(3, all());
        new "all of three, in order": all();
        new "all of three, of which one is hostile": any(2, all()), hostile: 1, forgeries: 1, last_token: 1;
        new "all of three, of which two are hostile": any(2, all()), hostile: 2, forgeries: 1;
    }
}

/// Returns the larger setups.
pub fn larger() -> Vec<Question<Setup>> {
    questions! {
        new "two of three, in order": most();
        new "two of three, and a fault, for longer": any(3, most()), faults: 1;
        new "two of three, and a fault, in order": most(), faults: 1;
        new "two of three with ages, for longer": any(3, most()), ages: true;
        new "two of three, and a crash": any(3, most()), crashes: 1;
        new "two of three, and another term": any(3, most()), gives_up: true, last_token: 1;
        new "two of three for a job, for longer": job(), writes: Some(4);
        new "two of three in the background, in order": most(), background: true;
        new "two of three, and stops": any(3, most()), stops: true;
        new "two of three, and stops, in order": most(), stops: true;
        new "all of three, for longer": any(4, all());
        new "all of three, and a fault": any(3, all()), faults: 1;
        new "all of three, and a fault, in order": all(), faults: 1;
        new "all of three, of which one is hostile, in order": all(), hostile: 1, forgeries: 1;
        new "two of three, and a request of a third": any(2, most()), rates: vec![1, 1, 1], requests: 1;
        new "all of three, of which two are hostile, in order": all(), hostile: 2, forgeries: 1;
        new "all of three, of which two are hostile, for longer": all(), hostile: 2, forgeries: 2;
    }
}

/// Returns the setups outside the bound.
pub fn broken() -> Vec<Question<Setup>> {
    questions! {
        new "two of three, of which one is hostile": any(2, most()), hostile: 1, forgeries: 1;
        new "all of three, of which all are hostile": all(), writes: Some(2), hostile: 3, forgeries: 3;
    }
}

/// Two candidates with good clocks that need two of three parts, and L/D equal to the ratio of the clocks.
fn most() -> Setup {
    Setup { rates: vec![1, 1], lease: 1, deadline: 1, parts: 3, needed: 2, ..Setup::default() }
}

fn all() -> Setup {
    Setup { needed: 3, ..most() }
}

fn job() -> Setup {
    Setup { job: true, last_token: 1, ..most() }
}

/// Parts that nobody holds, one of which has a later token than the others.
fn other(setup: Setup) -> Setup {
    Setup { tokens: vec![0, 0, 2], last_token: 1, ..setup }
}

/// Puts in any order, and so many writes: a half of one can stand in any part, so those of any number of writes would be too many
/// states.
fn any(writes: u8, setup: Setup) -> Setup {
    Setup { any_order: true, writes: Some(writes), ..setup }
}
