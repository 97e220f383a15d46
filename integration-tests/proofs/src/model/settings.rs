//! The explored setups: those of every test run, and those that are explored on demand.

use super::setup::{A, B, C, Manner, Setup, StoreClock};
use crate::kit::{Question, questions};

/// Returns the setups of every test run. Terms end with a release in all setups that are always electable.
pub fn questions() -> Vec<Question<Setup>> {
    questions! {
        new "late and lost requests": two(), late_writes: 1;
        new "slow reads": two(), instant_reads: false, last_token: 0, late_writes: 1;
        new "wrong answers": two(), lies: true, last_token: 0, late_writes: 1;
        new "crashes and late requests": two(), crashes: true, last_token: 0, late_writes: 1;
        new "a release and the next term": two(), stops: true, lease: 2, renew: 1;
        new "stops without release": two(), stops: true, work: Manner::EndsLate, releases: false, last_token: 0;
        new "ages by the store's clock": two(), store_clock: store_clock(1), lease: 4, renew: 3, retry: 2;
        new "ages in slow answers":
            two(), store_clock: store_clock(1), instant_reads: false, lease: 2, renew: 2, last_token: 0;
        new "ages by a clock that drifts as far as it may": drifting(), store_clock: store_clock(3);
        new "clocks that drift as far as they may": drifting();
        new "clocks that run as they like": lawless();
        new "three candidates": two(), nodes: three(), lease: 2, renew: 1, last_token: 0;
        new "a follower interval": two(), follower: Some(2);
        new "unequal leases": two(), lease: 2, renew: 1, other_lease: Some(4);
        new "new timings": retimed(), last_token: 0;
        new "new timings, and work that ends late": retimed(), work: Manner::EndsLate, last_token: 0;
        new "peers in two terms": two(), messages: 1, lease: 2, renew: 1;
        new "unequal ranks": two(), ranks: (0, 1), crashes: true, releases: true, lease: 2, renew: 1, last_token: 0;
        new "own leases taken at once": two(), crashes: true, reclaims: true, lease: 2, renew: 1;
        new "a spoilt record": two(), spoils: true, lease: 2, renew: 1, last_token: 0, late_writes: 1;
        new "waits that the store asks for": two(), waits: true, lease: 4, renew: 3, timeout: 1, last_token: 0;
        new "a deletion": two(), deletion: true, last_token: 0;
        new "a job": job(), late_writes: 1;
        new "a job whose hosts crash": job(), crashes: true;
        new "a job that is stopped": job(), stops: true, work: Manner::EndsLate, releases: false, last_token: 0;
        new "a job and a plain candidate": job(), jobs: 1;
        new "a job and a transfer": job(), transfers: 1, last_token: 0;
        electable "crashes": two(), crashes: true, lease: 2, renew: 1;
        electable "wrong answers in two terms": two(), lies: true;
        electable "stops and releases": two(), stops: true, work: Manner::EndsLate, last_token: 0;
        electable "work that fails": two(), fails: true, releases: false, lease: 2, renew: 1;
        electable "work that begins late": two(), stops: true, work: Manner::BeginsLate, last_token: 0;
        electable "a shared identity": two(), nodes: vec![(A, 1), (A, 1)], lease: 2, renew: 1;
        electable "a spoilt record, and no late writes": two(), spoils: true, lease: 2, renew: 1, last_token: 0;
        electable "a transfer": two(), transfers: 1, lease: 2, renew: 1, last_token: 0;
        electable "peers": two(), messages: 1, lease: 2, renew: 1, last_token: 0;
    }
}

/// Returns the larger setups: more terms, three candidates, and several faults at once.
pub fn larger() -> Vec<Question<Setup>> {
    questions! {
        new "a lease that is taken back": two(), ranks: (0, 1), takes_back: true, lease: 2, renew: 1, last_token: 0;
        new "stops, releases and late requests":
            two(), stops: true, work: Manner::EndsLate, last_token: 0, late_writes: 1;
        new "stops, releases and two terms": two(), stops: true, work: Manner::EndsLate;
        new "a job and a plain candidate that stops": job(), jobs: 1, stops: true;
        new "two transfers": two(), transfers: 2, lease: 2, renew: 1, last_token: 0;
        new "a transfer and a longer lease": two(), transfers: 1;
        new "unequal leases and late requests": two(), lease: 2, renew: 1, other_lease: Some(4), late_writes: 1;
        new "wrong answers and two terms": two(), lies: true, late_writes: 1;
        new "a shared identity and late requests": two(), nodes: vec![(A, 1), (A, 1)], late_writes: 1;
        new "three candidates and a longer lease": two(), nodes: three(), last_token: 0;
        new "drift, crashes and late requests": drifting(), crashes: true, late_writes: 1;
        electable "a follower interval, always electable": two(), follower: Some(2);
        new "peers that say more": two(), messages: 2, lease: 2, renew: 1;
        new "peers and a longer lease": two(), messages: 1;
        new "peers and late requests": two(), messages: 1, late_writes: 1, lease: 2, renew: 1;
        new "clocks that run as they like, and crashes": lawless(), crashes: true;
        electable "crashes and a longer lease": two(), crashes: true;
        electable "a shared identity and a longer lease": two(), nodes: vec![(A, 1), (A, 1)];
        electable "a transfer and two terms": two(), transfers: 1, lease: 2, renew: 1;
        electable "wrong answers and late requests, always electable": two(), lies: true, late_writes: 1;
        electable "a release and the next term, always electable": two(), stops: true, lease: 2, renew: 1;
        electable "stops, releases and two terms, always electable": two(), stops: true;
        electable "three candidates, always electable": two(), nodes: three(), lease: 2, renew: 1, last_token: 0;
    }
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
