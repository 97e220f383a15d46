//! The explored setups.

use super::phase::{ALL, BACK, BOTH, FORWARD, MOST, NEW, OLD, Phase, TO_ONE, TO_THREE};
use super::setup::{RETRY, Setup};
use crate::kit::Question;

/// The usual lease duration.
const LEASE: u8 = 3;

/// The lease duration of processes with unequal ranks, whose leader is asked after one lease.
const RANKED_LEASE: u8 = 2;

/// The longest time without a leader if no leader crashes: a candidate looks once in this time.
const POLL: Option<u8> = Some(RETRY);

/// The longest time without a leader after a fault. A candidate looks once per retry period, and waits for a lease.
const LEASE_AND_POLL: Option<u8> = Some(LEASE + RETRY);

/// The same for unequal ranks: the worse rank waits for one more poll.
const RANKED_LEASE_AND_POLLS: Option<u8> = Some(RANKED_LEASE + 2 * RETRY);

/// Returns the setups of every test run.
pub fn questions() -> Vec<Question<Setup>> {
    let question = Question::new;
    vec![
        question("one that holds both", Setup { faults: 3, crashes: 0, ..faulty(&[BOTH]) }),
        question("two that hold both", Setup { crashes: 0, eventful: 5, ..faulty(&[BOTH, BOTH]) }),
        question(
            "two that hold both, and a crash",
            Setup { any_order: true, faults: 0, eventful: 5, ..faulty(&[BOTH, BOTH]) },
        ),
        question("the old lock and both", Setup { eventful: 4, ..faulty(&[OLD, BOTH]) }),
        question("both and the new lock", Setup { eventful: 4, ..on_new(faulty(&[BOTH, NEW])) }),
        question("unequal leases", Setup { leases: [5, LEASE], gap: Some(5 + RETRY), ..faulty(&[OLD, BOTH]) }),
        question("the move", forward(&[OLD, OLD])),
        question("the move, and a crash", Setup { eventful: 1, ..crashing(forward(&[BOTH, OLD])) }),
        question("the way back", back(&[NEW, NEW])),
        question("the way back, and a crash", Setup { eventful: 1, ..crashing(back(&[BOTH, NEW])) }),
        question("the old lock and one that is refused", Setup { is_refused: true, ..quiet(&[BOTH, OLD]) }),
        question("both and one that is refused", Setup { is_refused: true, ..quiet(&[BOTH, BOTH]) }),
        question(
            "the old lock and one that is refused, and a crash",
            // A try of the refused candidate costs another poll.
            Setup { is_refused: true, crashes: 1, gap: Some(LEASE + 2 * RETRY), ..quiet(&[BOTH, OLD]) },
        ),
        question("a better rank", ranked(quiet(&[BOTH, BOTH]))),
        question("a better rank in the move", ranked(forward(&[BOTH, OLD]))),
        question("a better rank on the way back", ranked(back(&[BOTH, NEW]))),
        question(
            "a better rank, and a release of one lock",
            Setup { releases: 1, eventful: 4, gap: RANKED_LEASE_AND_POLLS, ..ranked(quiet(&[BOTH, BOTH])) },
        ),
        question(
            "a better rank that is refused",
            Setup { is_refused: true, eventful: 5, gap: RANKED_LEASE_AND_POLLS, ..ranked(quiet(&[BOTH, BOTH])) },
        ),
        question("half of an earlier life beside the old lock", left(1, &[OLD, BOTH])),
        question("half of an earlier life beside the new lock", left(0, &[NEW, BOTH])),
        question(
            "half of an earlier life that is reclaimed",
            Setup { reclaims: true, ages: false, ..left(1, &[OLD, BOTH]) },
        ),
        question("two that reclaim", Setup { reclaims: true, faults: 0, ..faulty(&[BOTH, BOTH]) }),
        question("one with a job", Setup { faults: 4, crashes: 0, ..with_job(&[BOTH]) }),
        question("two with a job", with_job(&[BOTH, BOTH])),
        question("one of three", Setup { crashes: 0, ..three(&[MOST]) }),
        question("two of three, and a fault", Setup { crashes: 0, eventful: 0, ..three(&[MOST, MOST]) }),
        question("two of three, and a crash", Setup { faults: 0, ..three(&[MOST, MOST]) }),
        question("two of three, of which one is gone", Setup { gone: Some(1), eventful: 1, ..three(&[MOST, MOST]) }),
        question("two of three, of which the first stops", Setup { stops: Some(0), ..quiet_three(&[MOST, MOST]) }),
        question("two of three, of which the last stops", Setup { stops: Some(2), ..quiet_three(&[MOST, MOST]) }),
        question("two of three, of which one is restored", Setup { restores: Some(0), ..quiet_three(&[MOST, MOST]) }),
        question(
            "all of three, of which one is careless",
            Setup { careless: Some(0), faults: 0, ..three(&[ALL, ALL]) },
        ),
        question("one of three with a job", Setup { job: true, gap: None, faults: 2, crashes: 0, ..three(&[MOST]) }),
        question("from one to three", Setup { rolls: Some(TO_THREE), eventful: 0, ..of_one(&[OLD, OLD]) }),
        question("from three to one", Setup { rolls: Some(TO_ONE), eventful: 0, ..quiet_three(&[MOST, MOST]) }),
        question("all of three, and two of three", Setup { crashes: 0, eventful: 0, ..three(&[ALL, MOST]) }),
    ]
}

/// Returns the larger setups.
pub fn larger() -> Vec<Question<Setup>> {
    let question = Question::new;
    vec![
        question("the old lock and both, for longer", Setup { eventful: 7, ..faulty(&[OLD, BOTH]) }),
        question("both and the new lock, for longer", Setup { eventful: 7, ..on_new(faulty(&[BOTH, NEW])) }),
        question("the move, for longer", Setup { eventful: 4, ..forward(&[OLD, OLD]) }),
        question("the move, and a later crash", Setup { eventful: 2, ..crashing(forward(&[BOTH, OLD])) }),
        question("the way back, and a later crash", Setup { eventful: 2, ..crashing(back(&[BOTH, NEW])) }),
        question(
            "two of three in any order, and a crash",
            Setup { faults: 0, any_order: true, ..three(&[MOST, MOST]) },
        ),
        question("two of three with a job", Setup { job: true, gap: None, crashes: 0, ..three(&[MOST, MOST]) }),
        question("two of three, and a later fault", Setup { crashes: 0, ..three(&[MOST, MOST]) }),
        question("one of three in any order", Setup { crashes: 0, any_order: true, ..three(&[MOST]) }),
        question("from one to three, for longer", Setup { rolls: Some(TO_THREE), ..of_one(&[OLD, OLD]) }),
        question("from three to one, for longer", Setup { rolls: Some(TO_ONE), ..quiet_three(&[MOST, MOST]) }),
        question(
            "the move, and a fault",
            Setup { faults: 1, crashes: 0, eventful: 1, ..crashing(forward(&[BOTH, OLD])) },
        ),
        question(
            "a better rank, a fault and a crash",
            Setup { eventful: 4, gap: RANKED_LEASE_AND_POLLS, ..ranked(faulty(&[BOTH, BOTH])) },
        ),
    ]
}

/// Returns the setups in which the rule of the rollouts is broken, and the promise that each of them breaks.
pub fn broken() -> Vec<(Question<Setup>, &'static str)> {
    let forward = || forward(&[OLD, OLD]);
    let back = || back(&[NEW, NEW]);
    vec![
        (Question::new("no leader of both is waited for", Setup { hasty: true, ..forward() }), "tokens rise"),
        (
            Question::new("no leader of both is waited for on the way back", Setup { hasty: true, ..back() }),
            "tokens rise",
        ),
        (
            Question::new("the first and the last phase together", Setup { all_at_once: true, ..forward() }),
            "one leader",
        ),
        (Question::new("the same on the way back", Setup { all_at_once: true, ..back() }), "one leader"),
        (
            Question::new(
                "two of three, of which one is careless",
                Setup { careless: Some(0), ..quiet_three(&[MOST, MOST]) },
            ),
            "one leader",
        ),
        (
            Question::new(
                "a lock is restored while another lacks the last write",
                Setup { restores: Some(0), hasty: true, ..quiet_three(&[MOST, MOST]) },
            ),
            "one leader",
        ),
        (
            Question::new(
                "one and two of three together",
                Setup { rolls: Some(TO_THREE), all_at_once: true, hasty: true, ..of_one(&[OLD, OLD]) },
            ),
            "one leader",
        ),
    ]
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
