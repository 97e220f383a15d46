//! The end of a term, step by step.

use std::time::Duration;

use super::{Ending, RunOutcome, TermEndReason, Timeout, WorkEnd};
use crate::clock::LocalInstant;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u32) -> LocalInstant {
    LocalInstant::default() + SECOND * seconds
}

/// The end of term 7. Its lease expires after 15 s, and work that does not stop is dropped 1 s earlier.
fn ending(reason: TermEndReason) -> Ending {
    Ending::of_term(7, reason, at(15), SECOND)
}

#[test]
fn work_that_does_not_stop_is_dropped_before_the_lease_expires() {
    let mut ending = ending(TermEndReason::Cancelled);
    assert_eq!((ending.drop_by(), ending.deadline()), (at(14), Some(at(14))));
    assert_eq!(ending.pass(at(14) - Duration::from_nanos(1)), None);
    assert_eq!(ending.pass(at(14)), Some(Timeout::Work));
    assert!(ending.awaits_work() && !ending.is_releasing());
    assert_eq!(ending.pass(at(14)), None);
    assert_eq!(ending.pass(at(15)), Some(Timeout::DroppedWork));
}

#[test]
fn work_dropped_after_a_suspend_still_gets_the_margin_to_end() {
    let mut ending = ending(TermEndReason::RenewDeadline);
    assert_eq!(ending.pass(at(3600)), Some(Timeout::Work));
    assert_eq!((ending.pass(at(3600)), ending.deadline()), (None, Some(at(3601))));
}

#[test]
fn the_release_follows_the_work_and_is_given_up_with_the_lease() {
    let mut ending = ending(TermEndReason::SteppedDown);
    assert!(!ending.is_releasing());
    // Only the deadline of a release is shortened: the work keeps its time.
    ending.shorten_deadline(at(1));
    assert_eq!(ending.deadline(), Some(at(14)));
    ending.release(at(15));
    assert!(ending.is_releasing() && !ending.awaits_work());
    assert_eq!((ending.pass(at(14)), ending.pass(at(15))), (None, Some(Timeout::Release)));
}

#[test]
fn the_deadline_of_a_release_is_only_ever_shortened() {
    let mut ending = Ending::of_candidacy(at(15));
    ending.shorten_deadline(at(9));
    ending.shorten_deadline(at(12));
    assert_eq!((ending.deadline(), ending.pass(at(9))), (Some(at(9)), Some(Timeout::Release)));
}

#[test]
fn what_is_left_to_the_session_has_no_deadline() {
    let mut left = ending(TermEndReason::SteppedDown);
    left.leave_to_session();
    for mut ending in [left, Ending::of_session(7, TermEndReason::Cancelled)] {
        assert!(ending.is_of_session() && !ending.awaits_work() && !ending.is_releasing());
        assert_eq!((ending.deadline(), ending.pass(at(3600))), (None, None));
    }
}

#[test]
fn the_outcome_is_the_term_and_its_reason() {
    for work in [None, Some(WorkEnd::Complete), Some(WorkEnd::Failed), Some(WorkEnd::NotBegun)] {
        let led = RunOutcome::Led { fencing_token: 7.into(), reason: TermEndReason::SteppedDown };
        assert_eq!(ending(TermEndReason::SteppedDown).outcome(work, false), Some(led));
        assert_eq!(Ending::of_candidacy(at(1)).outcome(work, false), Some(RunOutcome::NeverLed));
    }
}

#[test]
fn after_a_term_without_work_the_candidate_competes_again() {
    let missed = |stops| ending(TermEndReason::RenewDeadline).outcome(Some(WorkEnd::NotBegun), stops);
    assert_eq!((missed(false), missed(true)), (None, Some(RunOutcome::NeverLed)));
    let led = ending(TermEndReason::RenewDeadline).outcome(Some(WorkEnd::Dropped), false);
    assert_eq!(led, Some(RunOutcome::Led { fencing_token: 7.into(), reason: TermEndReason::RenewDeadline }));
}

#[test]
fn failed_or_unbegun_work_ends_its_term() {
    let ends = [
        (WorkEnd::Panicked, Some(TermEndReason::WorkPanicked)),
        (WorkEnd::Failed, Some(TermEndReason::WorkFailed)),
        (WorkEnd::NotBegun, Some(TermEndReason::RenewDeadline)),
        (WorkEnd::Dropped, None),
    ];
    for (end, reason) in ends {
        assert_eq!((end.ends_term(false), end.ends_term(true)), (reason.clone(), reason));
    }
    assert_eq!(WorkEnd::Complete.ends_term(false), None);
    assert_eq!(WorkEnd::Complete.ends_term(true), Some(TermEndReason::WorkFinished));
}

#[test]
fn others_go_first_only_after_a_step_down_or_failed_work() {
    let (to, by) = ("b".to_owned(), "b".to_owned());
    for reason in [TermEndReason::SteppedDown, TermEndReason::WorkPanicked, TermEndReason::WorkFailed] {
        assert!(reason.cools_down(), "{reason:?}");
    }
    use TermEndReason::{Cancelled, Deleted, Emptied, RenewDeadline, TakenOver, Transferred, Unreadable, WorkFinished};
    let others =
        [Cancelled, Transferred { to }, RenewDeadline, TakenOver { by }, Emptied, Deleted, Unreadable, WorkFinished];
    for reason in others {
        assert!(!reason.cools_down(), "{reason:?}");
    }
}
