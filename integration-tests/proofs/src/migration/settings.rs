//! The explored setups.

use leaderelection::migration::view::Half;

use super::phase::{Direction, Phase};
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
    use Phase::{Both, New, Old};
    let question = Question::new;
    vec![
        question("one that holds both", Setup { faults: 3, crashes: 0, ..faulty(&[Both]) }),
        question("two that hold both", Setup { crashes: 0, eventful: 5, ..faulty(&[Both, Both]) }),
        question(
            "two that hold both, and a crash",
            Setup { any_order: true, faults: 0, eventful: 5, ..faulty(&[Both, Both]) },
        ),
        question("the old lock and both", Setup { eventful: 4, ..faulty(&[Old, Both]) }),
        question("both and the new lock", Setup { eventful: 4, ..on_new(faulty(&[Both, New])) }),
        question("unequal leases", Setup { leases: [5, LEASE], gap: Some(5 + RETRY), ..faulty(&[Old, Both]) }),
        question("the move", forward(&[Old, Old])),
        question("the move, and a crash", Setup { eventful: 1, ..crashing(forward(&[Both, Old])) }),
        question("the way back", back(&[New, New])),
        question("the way back, and a crash", Setup { eventful: 1, ..crashing(back(&[Both, New])) }),
        question("the old lock and one that is refused", Setup { is_refused: true, ..quiet(&[Both, Old]) }),
        question("both and one that is refused", Setup { is_refused: true, ..quiet(&[Both, Both]) }),
        question(
            "the old lock and one that is refused, and a crash",
            // A try of the refused candidate costs another poll.
            Setup { is_refused: true, crashes: 1, gap: Some(LEASE + 2 * RETRY), ..quiet(&[Both, Old]) },
        ),
        question("a better rank", ranked(quiet(&[Both, Both]))),
        question("a better rank in the move", ranked(forward(&[Both, Old]))),
        question("a better rank on the way back", ranked(back(&[Both, New]))),
        question(
            "a better rank, and a release of one lock",
            Setup { releases: 1, eventful: 4, gap: RANKED_LEASE_AND_POLLS, ..ranked(quiet(&[Both, Both])) },
        ),
        question(
            "a better rank that is refused",
            Setup { is_refused: true, eventful: 5, gap: RANKED_LEASE_AND_POLLS, ..ranked(quiet(&[Both, Both])) },
        ),
        question("half of an earlier life beside the old lock", left(Half::New, &[Old, Both])),
        question("half of an earlier life beside the new lock", left(Half::Old, &[New, Both])),
        question(
            "half of an earlier life that is reclaimed",
            Setup { reclaims: true, ages: false, ..left(Half::New, &[Old, Both]) },
        ),
        question("two that reclaim", Setup { reclaims: true, faults: 0, ..faulty(&[Both, Both]) }),
        question("one with a job", Setup { faults: 4, crashes: 0, ..with_job(&[Both]) }),
        question("two with a job", with_job(&[Both, Both])),
    ]
}

/// Returns the larger setups.
pub fn larger() -> Vec<Question<Setup>> {
    use Phase::{Both, New, Old};
    let question = Question::new;
    vec![
        question("the old lock and both, for longer", Setup { eventful: 7, ..faulty(&[Old, Both]) }),
        question("both and the new lock, for longer", Setup { eventful: 7, ..on_new(faulty(&[Both, New])) }),
        question("the move, for longer", Setup { eventful: 4, ..forward(&[Old, Old]) }),
        question("the move, and a later crash", Setup { eventful: 2, ..crashing(forward(&[Both, Old])) }),
        question("the way back, and a later crash", Setup { eventful: 2, ..crashing(back(&[Both, New])) }),
        question(
            "the move, and a fault",
            Setup { faults: 1, crashes: 0, eventful: 1, ..crashing(forward(&[Both, Old])) },
        ),
        question(
            "a better rank, a fault and a crash",
            Setup { eventful: 4, gap: RANKED_LEASE_AND_POLLS, ..ranked(faulty(&[Both, Both])) },
        ),
    ]
}

/// Returns the setups in which the rule of the rollouts is broken, and the promise that each of them breaks.
pub fn broken() -> Vec<(Question<Setup>, &'static str)> {
    let forward = || forward(&[Phase::Old, Phase::Old]);
    let back = || back(&[Phase::New, Phase::New]);
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
    ]
}

/// Returns a setup with one fault and one crash.
fn faulty(phases: &[Phase]) -> Setup {
    Setup {
        phases: phases.to_vec(),
        leases: [LEASE; 2],
        deadlines: [2; 2],
        tokens: [Some(2), None],
        faults: 1,
        crashes: 1,
        eventful: 3,
        gap: LEASE_AND_POLL,
        ..Setup::default()
    }
}

/// Returns a setup without faults and crashes.
fn quiet(phases: &[Phase]) -> Setup {
    Setup { faults: 0, crashes: 0, gap: POLL, ..faulty(phases) }
}

fn forward(phases: &[Phase]) -> Setup {
    Setup { rolls: Some(Direction::Forward), ..quiet(phases) }
}

fn back(phases: &[Phase]) -> Setup {
    Setup { rolls: Some(Direction::Back), tokens: [Some(2), Some(6)], ..quiet(phases) }
}

/// Returns a setup with a half that the second process has left in one lock. The lease of the first, which uses the other lock
/// only, is longer, and the locks tell ages. No term had the higher token of the half. The question of a gap is not asked,
/// because the processes would have to be observed for longer.
fn left(half: Half, phases: &[Phase]) -> Setup {
    Setup {
        left: Some((half, 1, 6)),
        tokens: [Some(2); 2],
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
    Setup { tokens: [Some(2), Some(3)], ..setup }
}

fn crashing(setup: Setup) -> Setup {
    Setup { crashes: 1, gap: LEASE_AND_POLL, ..setup }
}

/// Changes a setup so that the first process asks the second for the lease. The worse rank waits for one more poll.
fn ranked(setup: Setup) -> Setup {
    Setup { takes_back: true, leases: [RANKED_LEASE; 2], gap: Some(2 * RETRY), ..setup }
}
