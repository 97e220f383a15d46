//! The explored setups.

use super::setup::{RETRY, Setup};
use crate::kit::{Question, questions};
use crate::phase::{ALL, BACK, BOTH, FORWARD, MOST, MOST_OF_FOUR, NEW, OLD, Phase, TO_ONE, TO_THREE};

/// The usual lease duration.
const LEASE: u8 = 3;

/// The lease duration of processes with unequal ranks, whose leader is asked after one lease.
const RANKED_LEASE: u8 = 2;

/// The longest time without a leader if no leader crashes: a candidate polls once in this time.
const POLL: Option<u8> = Some(RETRY);

/// The longest time without a leader after a fault. A candidate polls once per retry period, and waits for a lease.
const LEASE_AND_POLL: Option<u8> = Some(LEASE + RETRY);

/// The same for unequal ranks: the worse rank waits for one more poll.
const RANKED_LEASE_AND_POLLS: Option<u8> = Some(RANKED_LEASE + 2 * RETRY);

/// Returns the setups of every test run.
pub fn questions() -> Vec<Question<Setup>> {
    questions! {
        new "one that holds both": faulty(&[BOTH]), faults: 3, crashes: 0;
        new "two that hold both": faulty(&[BOTH, BOTH]), crashes: 0, eventful: 5;
        new "two that hold both, and a crash": faulty(&[BOTH, BOTH]), any_order: true, faults: 0, eventful: 5;
        new "the old lock and both": faulty(&[OLD, BOTH]), eventful: 4;
        new "both and the new lock": on_new(faulty(&[BOTH, NEW])), eventful: 4;
        new "unequal leases": faulty(&[OLD, BOTH]), leases: [5, LEASE], gap: Some(5 + RETRY);
        new "the move": forward(&[OLD, OLD]);
        new "the move, and a crash": crashing(forward(&[BOTH, OLD])), eventful: 1;
        new "the way back": back(&[NEW, NEW]);
        new "the way back, and a crash": crashing(back(&[BOTH, NEW])), eventful: 1;
        new "the old lock and one that is refused": quiet(&[BOTH, OLD]), is_refused: true;
        new "both and one that is refused": quiet(&[BOTH, BOTH]), is_refused: true;
        // A try of the refused candidate costs another poll.
        new "the old lock and one that is refused, and a crash":
            quiet(&[BOTH, OLD]), is_refused: true, crashes: 1, gap: Some(LEASE + 2 * RETRY);
        new "a better rank": ranked(quiet(&[BOTH, BOTH]));
        new "a better rank in the move": ranked(forward(&[BOTH, OLD]));
        new "a better rank on the way back": ranked(back(&[BOTH, NEW]));
        new "a better rank, and a release of one lock":
            ranked(quiet(&[BOTH, BOTH])), releases: 1, eventful: 4, gap: RANKED_LEASE_AND_POLLS;
        new "a better rank that is refused":
            ranked(quiet(&[BOTH, BOTH])), is_refused: true, eventful: 5, gap: RANKED_LEASE_AND_POLLS;
        new "half of an earlier life beside the old lock": left(1, &[OLD, BOTH]);
        new "half of an earlier life beside the new lock": left(0, &[NEW, BOTH]);
        new "half of an earlier life that is reclaimed": left(1, &[OLD, BOTH]), reclaims: true, ages: false;
        new "two that reclaim": faulty(&[BOTH, BOTH]), reclaims: true, faults: 0;
        new "one with a job": with_job(&[BOTH]), faults: 4, crashes: 0;
        new "two with a job": with_job(&[BOTH, BOTH]);
        new "one of three": three(&[MOST]), crashes: 0;
        new "two of three, and a crash": three(&[MOST, MOST]), faults: 0;
        new "two of three, of which one is gone": gone(), crashes: 0;
        new "two of three, of which the first stops": quiet_three(&[MOST, MOST]), stops: Some(0);
        new "two of three, of which the last stops": quiet_three(&[MOST, MOST]), stops: Some(2);
        new "two of three, of which one is restored": quiet_three(&[MOST, MOST]), restores: Some(0);
        new "all of three, of which two are hostile":
            quiet_three(&[ALL, ALL]), hostile: vec![1, 2], forgeries: 1, gap: None;
        new "all of three, of which one is careless": three(&[ALL, ALL]), careless: Some(0), faults: 0;
        new "one of three with a job": three(&[MOST]), job: true, gap: None, faults: 2, crashes: 0;
        new "from one to three": of_one(&[OLD, OLD]), rolls: Some(TO_THREE), eventful: 0;
        new "all of three, and two of three": three(&[ALL, MOST]), crashes: 0, eventful: 0;
    }
}

/// Returns the larger setups.
pub fn larger() -> Vec<Question<Setup>> {
    questions! {
        new "the old lock and both, for longer": faulty(&[OLD, BOTH]), eventful: 7;
        new "both and the new lock, for longer": on_new(faulty(&[BOTH, NEW])), eventful: 7;
        new "the move, for longer": forward(&[OLD, OLD]), eventful: 4;
        new "the move, and a later crash": crashing(forward(&[BOTH, OLD])), eventful: 2;
        new "the way back, and a later crash": crashing(back(&[BOTH, NEW])), eventful: 2;
        new "two of three in any order, and a crash": three(&[MOST, MOST]), faults: 0, any_order: true;
        new "two of three with a job": three(&[MOST, MOST]), job: true, gap: None, crashes: 0;
        new "two of three, and a later fault": three(&[MOST, MOST]), crashes: 0;
        new "one of three in any order": three(&[MOST]), crashes: 0, any_order: true;
        new "two of three, of which one is gone, and a crash": gone();
        new "from one to three, for longer": of_one(&[OLD, OLD]), rolls: Some(TO_THREE);
        new "from three to one, for longer": quiet_three(&[MOST, MOST]), rolls: Some(TO_ONE);
        new "all of three, of which two are hostile, for longer":
            quiet_three(&[ALL, ALL]), hostile: vec![1, 2], forgeries: 2, gap: None;
        new "three of four, of which one is hostile":
            quiet_four(), hostile: vec![0], forgeries: 1, crashes: 1, eventful: 1;
        new "the move, and a fault": crashing(forward(&[BOTH, OLD])), faults: 1, crashes: 0, eventful: 1;
        new "a better rank, a fault and a crash":
            ranked(faulty(&[BOTH, BOTH])), eventful: 4, gap: RANKED_LEASE_AND_POLLS;
    }
}

/// Returns the setups in which the rule of the rollouts is broken, and the promise that each of them breaks.
pub fn broken() -> Vec<(Question<Setup>, &'static str)> {
    let breaks = |promise| move |question| (question, promise);
    let tokens = questions! {
        new "no leader of both is waited for": forward(&[OLD, OLD]), hasty: true;
        new "no leader of both is waited for on the way back": back(&[NEW, NEW]), hasty: true;
        new "one and two of three together":
            of_one(&[OLD, OLD]), rolls: Some(TO_THREE), all_at_once: true, hasty: true;
    };
    let leaders = questions! {
        new "the first and the last phase together": forward(&[OLD, OLD]), all_at_once: true;
        new "the same on the way back": back(&[NEW, NEW]), all_at_once: true;
        new "two of three, of which one is careless": quiet_three(&[MOST, MOST]), careless: Some(0);
        // Two quorums have one lock in common, and that lock lies.
        new "two of three, of which one is hostile":
            three(&[MOST, MOST]), hostile: vec![0], forgeries: 1, crashes: 0;
        new "a lock is restored while another lacks the last write":
            quiet_three(&[MOST, MOST]), restores: Some(0), hasty: true;
    };
    let tokens = tokens.into_iter().map(breaks("tokens rise"));
    tokens.chain(leaders.into_iter().map(breaks("one leader"))).collect()
}

/// Returns a setup with one fault and one crash.
fn faulty(phases: &[Phase]) -> Setup {
    Setup {
        phases: phases.to_vec(),
        leases: [LEASE; 2],
        deadlines: [2; 2],
        tokens: vec![Some(2), None],
        faults: 1,
        crashes: 1,
        eventful: 3,
        gap: LEASE_AND_POLL,
        ..Setup::default()
    }
}

/// Returns a setup with three locks, two of which were in use.
fn three(phases: &[Phase]) -> Setup {
    Setup { tokens: vec![Some(2), Some(2), None], eventful: 2, ..faulty(phases) }
}

/// Returns a setup with three locks, without lost requests and crashes.
fn quiet_three(phases: &[Phase]) -> Setup {
    Setup { faults: 0, crashes: 0, ..three(phases) }
}

/// Returns a setup with four locks, of which a leader needs three, without lost requests and crashes.
fn quiet_four() -> Setup {
    Setup { tokens: vec![Some(2), Some(2), Some(2), None], ..quiet_three(&[MOST_OF_FOUR, MOST_OF_FOUR]) }
}

/// Returns a setup with three locks, the second of which is gone for good.
fn gone() -> Setup {
    Setup { gone: Some(1), eventful: 1, ..three(&[MOST, MOST]) }
}

/// Returns a setup with three locks, the first of which was in use.
fn of_one(phases: &[Phase]) -> Setup {
    Setup { tokens: vec![Some(2), None, None], ..quiet_three(phases) }
}

/// Returns a setup without faults and crashes.
fn quiet(phases: &[Phase]) -> Setup {
    Setup { faults: 0, crashes: 0, gap: POLL, ..faulty(phases) }
}

fn forward(phases: &[Phase]) -> Setup {
    Setup { rolls: Some(FORWARD), ..quiet(phases) }
}

fn back(phases: &[Phase]) -> Setup {
    Setup { rolls: Some(BACK), tokens: vec![Some(2), Some(6)], ..quiet(phases) }
}

/// Returns a setup with a half that the second process has left in one lock. The lease of the first, which uses the other lock
/// only, is longer, and the locks tell ages. No term had the higher token of the half. The question of a gap is not asked,
/// because the processes would have to be observed for longer.
fn left(part: usize, phases: &[Phase]) -> Setup {
    Setup {
        left: Some((part, 1, 6)),
        tokens: vec![Some(2); 2],
        leases: [5, LEASE],
        deadlines: [4, 2],
        ages: true,
        faults: 2,
        crashes: 0,
        gap: None,
        ..faulty(phases)
    }
}

/// Returns a setup whose processes compete for a job. The question of a gap is not asked, because nobody leads in the end.
fn with_job(phases: &[Phase]) -> Setup {
    Setup { job: true, gap: None, eventful: 4, ..faulty(phases) }
}

fn on_new(setup: Setup) -> Setup {
    Setup { tokens: vec![Some(2), Some(3)], ..setup }
}

fn crashing(setup: Setup) -> Setup {
    Setup { crashes: 1, gap: LEASE_AND_POLL, ..setup }
}

/// Changes a setup so that the first process asks the second for the lease. The worse rank waits for one more poll.
fn ranked(setup: Setup) -> Setup {
    Setup { takes_back: true, leases: [RANKED_LEASE; 2], gap: Some(2 * RETRY), ..setup }
}
