//! The explored setups: those of every test run, and those that are explored on demand.

use super::setup::Setup;
use crate::kit::{Question, questions};

/// Returns the setups of every test run. An exact margin, L/D equal to the ratio of the clocks, finds a date that is off by one.
pub fn questions() -> Vec<Question<Setup>> {
    questions! {
        new "late and lost requests": two(), late_writes: 1;
        new "slow reads": two(), slow_reads: true, last_token: 0, late_writes: 1;
        new "wrong answers": two(), lies: true, late_writes: 1;
        new "crashes and late requests": two(), crashes: true, last_token: 0, late_writes: 1;
        new "stops and late work": short(), stops: true, late_work: true, last_token: 0, late_writes: 1;
        new "stops at once": short(), stops_at_once: true, last_token: 0;
        new "stops and two terms": short(), stops: true;
        new "clocks that drift as far as they may": drifting();
        new "drift and late requests": drifting(), late_writes: 1, last_token: 0;
        new "three candidates": short(), rates: vec![1, 1, 1], last_token: 0;
        new "unequal leases": short(), other_lease: Some(4);
        new "other timings": short(), retimed: (3, 2), reconfigures: 2, last_token: 0, late_writes: 1;
        new "crossing timings and late work": short(), lease: 3, retimed: (2, 2), reconfigures: 1, late_work: true;
        new "unequal leases and a request": short(), other_lease: Some(3), requests: 1, last_token: 0;
        new "another library": short(), foreign: true, last_token: 0, late_writes: 1;
        new "drivers that start again": short(), restarts: true, late_writes: 1, last_token: 0;
        new "drivers of a job that start again": short(), restarts: true, jobs: 2;
        new "hints": tight(), hints: true, last_token: 0;
        new "own leases acquired at once": short(), crashes: true, reclaims: true, late_writes: 1;
        new "a shared identity": short(), shared: true, late_writes: 1;
        new "a spoilt record": short(), spoils: true, late_work: true, late_writes: 1, last_token: 0;
        new "two requests": short(), requests: 2, last_token: 0, late_writes: 1;
        new "a deletion": two(), deletion: true, last_token: 0, late_writes: 1;
        new "a job": short(), jobs: 2;
        new "a job that is stopped": short(), jobs: 2, stops: true, last_token: 0;
        new "a job and a plain candidate": short(), jobs: 1, stops: true, last_token: 0;
        new "ages by the store's clock": two(), deadline: 3, store_clock: Some((1, 2, 2)), slow_reads: true, last_token: 0;
        new "the smallest margin": tight(), late_writes: 1, slow_reads: true;
        new "clocks that run as they like": two(), rates: vec![3, 1], lawless: true, late_writes: 1;
    }
}

/// Returns the larger setups.
pub fn larger() -> Vec<Question<Setup>> {
    questions! {
        new "slow reads and two terms": short(), slow_reads: true, late_writes: 1;
        new "crashes and two terms": short(), crashes: true, late_writes: 1;
        new "stops and a longer lease": two(), stops: true, last_token: 0, late_writes: 1;
        new "longer timings and late work": short(), retimed: (4, 2), reconfigures: 1, late_work: true;
        new "a deletion and stops": short(), deletion: true, stops: true;
        new "new timings": short(), retimed: (6, 3), reconfigures: 2, last_token: 0;
        new "new timings and two terms": short(), retimed: (4, 3), reconfigures: 2;
        new "hints, late requests and two terms": tight(), hints: true, late_writes: 1;
        new "hints and a longer lease": two(), hints: true, last_token: 0;
        new "requests to hand over": short(), requests: 1, stops: true;
    }
}

/// Two candidates with good clocks, two terms, and an exact margin between one read and the next write.
fn two() -> Setup {
    Setup { rates: vec![1, 1], lease: 3, deadline: 2, last_token: 1, ..Setup::default() }
}

fn short() -> Setup {
    Setup { lease: 2, deadline: 1, ..two() }
}

/// L/D equal to the ratio of the clocks.
fn tight() -> Setup {
    Setup { lease: 2, deadline: 2, ..two() }
}

fn drifting() -> Setup {
    Setup { rates: vec![3, 2], lease: 6, deadline: 4, ..two() }
}
