//! The explored setups: those of every test run, and those that are explored on demand.

use super::setup::{A, B, C, Manner, Setup, StoreClock};
use crate::kit::Question;

/// Returns the setups of every test run. Terms end with a release in all setups that are always electable.
pub fn questions() -> Vec<Question<Setup>> {
    let (question, electable) = (Question::new, Question::electable);
    vec![
        question("late and lost requests", Setup { late_writes: 1, ..two() }),
        question("slow reads", Setup { instant_reads: false, last_token: 0, late_writes: 1, ..two() }),
        question("wrong answers", Setup { lies: true, last_token: 0, late_writes: 1, ..two() }),
        question("crashes and late requests", Setup { crashes: true, last_token: 0, late_writes: 1, ..two() }),
        question("a release and the next term", Setup { stops: true, lease: 2, renew: 1, ..two() }),
        question(
            "stops without release",
            Setup { stops: true, work: Manner::EndsLate, releases: false, last_token: 0, ..two() },
        ),
        question(
            "ages by the store's clock",
            Setup { store_clock: store_clock(1), lease: 4, renew: 3, retry: 2, ..two() },
        ),
        question(
            "ages in slow answers",
            Setup { store_clock: store_clock(1), instant_reads: false, lease: 2, renew: 2, last_token: 0, ..two() },
        ),
        question("ages by a clock that drifts as far as it may", Setup { store_clock: store_clock(3), ..drifting() }),
        question("clocks that drift as far as they may", drifting()),
        question("clocks that run as they like", lawless()),
        question("three candidates", Setup { nodes: three(), lease: 2, renew: 1, last_token: 0, ..two() }),
        question("a follower interval", Setup { follower: Some(2), ..two() }),
        question("unequal leases", Setup { lease: 2, renew: 1, other_lease: Some(4), ..two() }),
        question("new timings", Setup { last_token: 0, ..retimed() }),
        question("new timings, and work that ends late", Setup { work: Manner::EndsLate, last_token: 0, ..retimed() }),
        question(
            "unequal ranks",
            Setup { ranks: (0, 1), crashes: true, releases: true, lease: 2, renew: 1, last_token: 0, ..two() },
        ),
        question("own leases taken at once", Setup { crashes: true, reclaims: true, lease: 2, renew: 1, ..two() }),
        question("two transfers", Setup { transfers: 2, lease: 2, renew: 1, last_token: 0, ..two() }),
        question("a spoilt record", Setup { spoils: true, lease: 2, renew: 1, last_token: 0, late_writes: 1, ..two() }),
        question("waits that the store asks for", Setup { waits: true, last_token: 0, ..two() }),
        question("a deletion", Setup { deletion: true, last_token: 0, ..two() }),
        question("a job", Setup { late_writes: 1, ..job() }),
        question("a job whose hosts crash", Setup { crashes: true, ..job() }),
        question(
            "a job that is stopped",
            Setup { stops: true, work: Manner::EndsLate, releases: false, last_token: 0, ..job() },
        ),
        question("a job and a plain candidate", Setup { jobs: 1, ..job() }),
        question("a job and a transfer", Setup { transfers: 1, last_token: 0, ..job() }),
        electable("crashes", Setup { crashes: true, ..two() }),
        electable("wrong answers in two terms", Setup { lies: true, ..two() }),
        electable("stops and releases", Setup { stops: true, work: Manner::EndsLate, last_token: 0, ..two() }),
        electable("work that fails", Setup { fails: true, releases: false, lease: 2, renew: 1, ..two() }),
        electable("work that begins late", Setup { stops: true, work: Manner::BeginsLate, last_token: 0, ..two() }),
        electable("a shared identity", Setup { nodes: vec![(A, 1), (A, 1)], ..two() }),
        electable(
            "a spoilt record, and no late writes",
            Setup { spoils: true, lease: 2, renew: 1, last_token: 0, ..two() },
        ),
        electable("a transfer", Setup { transfers: 1, lease: 2, renew: 1, last_token: 0, ..two() }),
        electable("peers", Setup { words: 1, lease: 2, renew: 1, ..two() }),
        electable("a follower interval, always electable", Setup { follower: Some(2), ..two() }),
    ]
}

/// Returns the larger setups: more terms, three candidates, and several faults at once.
pub fn larger() -> Vec<Question<Setup>> {
    let (question, electable) = (Question::new, Question::electable);
    vec![
        question(
            "a lease that is taken back",
            Setup { ranks: (0, 1), takes_back: true, lease: 2, renew: 1, last_token: 0, ..two() },
        ),
        question(
            "stops, releases and late requests",
            Setup { stops: true, work: Manner::EndsLate, last_token: 0, late_writes: 1, ..two() },
        ),
        question("stops, releases and two terms", Setup { stops: true, work: Manner::EndsLate, ..two() }),
        question("a job and a plain candidate that stops", Setup { jobs: 1, stops: true, ..job() }),
        question("a transfer and a longer lease", Setup { transfers: 1, ..two() }),
        question(
            "unequal leases and late requests",
            Setup { lease: 2, renew: 1, other_lease: Some(4), late_writes: 1, ..two() },
        ),
        question("wrong answers and two terms", Setup { lies: true, late_writes: 1, ..two() }),
        question("a shared identity and late requests", Setup { nodes: vec![(A, 1), (A, 1)], late_writes: 1, ..two() }),
        question("three candidates and a longer lease", Setup { nodes: three(), last_token: 0, ..two() }),
        question("drift, crashes and late requests", Setup { crashes: true, late_writes: 1, ..drifting() }),
        question("peers that say more", Setup { words: 2, lease: 2, renew: 1, ..two() }),
        question("peers and a longer lease", Setup { words: 1, ..two() }),
        question("peers and late requests", Setup { words: 1, late_writes: 1, lease: 2, renew: 1, ..two() }),
        question("clocks that run as they like, and crashes", Setup { crashes: true, ..lawless() }),
        electable("a transfer and two terms", Setup { transfers: 1, lease: 2, renew: 1, ..two() }),
        electable("wrong answers and late requests, always electable", Setup { lies: true, late_writes: 1, ..two() }),
        electable("a release and the next term, always electable", Setup { stops: true, lease: 2, renew: 1, ..two() }),
        electable("stops, releases and two terms, always electable", Setup { stops: true, ..two() }),
        electable(
            "three candidates, always electable",
            Setup { nodes: three(), lease: 2, renew: 1, last_token: 0, ..two() },
        ),
    ]
}

/// Returns a setup of two candidates whose clocks drift as far as they may.
fn drifting() -> Setup {
    Setup { nodes: vec![(A, 3), (B, 2)], lease: 6, renew: 4, retry: 2, ..two() }
}

/// Returns a setup in which timings are made longer or shorter while the nodes run.
fn retimed() -> Setup {
    Setup { reconfigures: 2, longer: 3, lease: 2, renew: 1, ..two() }
}

fn store_clock(rate: u64) -> Option<StoreClock> {
    Some(StoreClock { rate, error: 2, slack: 2 })
}

fn lawless() -> Setup {
    Setup { nodes: vec![(A, 3), (B, 1)], trusted_clocks: false, late_writes: 1, ..two() }
}

/// Returns a setup of two candidates for one job.
fn job() -> Setup {
    Setup { jobs: 2, lease: 2, renew: 1, ..two() }
}

fn three() -> Vec<(&'static str, u64)> {
    vec![(A, 1), (B, 1), (C, 1)]
}

/// Returns a setup of two candidates with good clocks, two terms, and requests that are lost.
fn two() -> Setup {
    Setup {
        nodes: vec![(A, 1), (B, 1)],
        lease: 3,
        renew: 2,
        retry: 1,
        last_token: 1,
        instant_reads: true,
        trusted_clocks: true,
        releases: true,
        ..Setup::default()
    }
}
