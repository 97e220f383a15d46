use std::ffi::OsStr;

use clap::Command;
use clap::builder::TypedValueParser as _;

use super::*;
use crate::lock::PrefixUrl;
use crate::lock::view::View;

fn prefix() -> PrefixUrl {
    PrefixUrl::parser().parse_ref(&Command::new("dashboard"), None, OsStr::new("memory:")).unwrap()
}

fn row(status: LockStatus, holder: &str, token: u64) -> Row {
    let mut record = leaderelection::LeaderElectionRecord::new(holder, Duration::from_secs(15));
    record.leader_transitions = token;
    let view = View { status, ..View::of_record(&prefix().at("a"), &record) };
    Row { key: "a".to_owned(), view, observed: None, store_age: None, unreadable_for: None }
}

fn at(seconds: u64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn terms_begin_and_end_with_what_the_scans_show() {
    let mut terms = Vec::new();
    for (second, status, holder, token) in [
        (0, LockStatus::Held, "alpha", 1),
        (5, LockStatus::Led, "alpha", 1),
        (10, LockStatus::Unknown(Cause::Silent), "", 0),
        (15, LockStatus::HandingOver, "alpha", 1),
        (20, LockStatus::Led, "beta", 2),
        (25, LockStatus::Led, "beta", 3),
        (30, LockStatus::Expired, "beta", 3),
        (35, LockStatus::Expired, "beta", 3),
        (40, LockStatus::Led, "alpha", 4),
        (45, LockStatus::Free, "", 4),
        (50, LockStatus::Free, "", 4),
    ] {
        record(&mut terms, &row(status, holder, token), at(second));
    }
    let seen: Vec<_> = terms
        .iter()
        .map(|term| (term.holder.as_str(), term.since, term.until(), term.ended.as_ref().unwrap().to_string()))
        .collect();
    assert_eq!(
        seen,
        [
            ("alpha", Some(at(0)), Some(at(20)), "the lease was taken over by \"beta\"".to_owned()),
            ("beta", Some(at(20)), Some(at(25)), "the lease was taken over by \"beta\"".to_owned()),
            ("beta", Some(at(25)), Some(at(30)), "the lease expired".to_owned()),
            ("alpha", Some(at(40)), Some(at(45)), "the lease was released".to_owned()),
        ]
    );
    for token in 5..50 {
        record(&mut terms, &row(LockStatus::Led, "alpha", token), at(100));
    }
    assert_eq!(terms.len(), REMEMBERED);
}

#[tokio::test]
async fn a_lock_that_was_deleted_under_its_holder_is_shown_for_a_while() {
    let survey = Scanner::open(prefix(), Duration::from_secs(1)).await.unwrap();
    let mut keeper = History::new(survey);
    let now = LocalInstant::from_nanos(0);
    let statuses = |keeper: &History| keeper.board.locks.iter().map(|lock| lock.row.view.status).collect::<Vec<_>>();
    keeper.take_in(vec![row(LockStatus::Free, "", 1)], now, at(0));
    keeper.take_in(vec![], now, at(1));
    assert_eq!(statuses(&keeper), [], "nobody misses a free lock");
    keeper.take_in(vec![row(LockStatus::Led, "alpha", 1)], now, at(2));
    keeper.take_in(vec![], now, at(3));
    keeper.take_in(vec![], now + RETENTION_OF_GONE / 2, at(4));
    assert_eq!(statuses(&keeper), [LockStatus::Absent]);
    assert_eq!(keeper.board.locks[0].terms[0].ended, Some(TermEndReason::Deleted));
    keeper.take_in(vec![row(LockStatus::Led, "alpha", 1)], now + RETENTION_OF_GONE / 2, at(5));
    assert_eq!(statuses(&keeper), [LockStatus::Led]);
    keeper.take_in(vec![], now + RETENTION_OF_GONE / 2, at(6));
    keeper.take_in(vec![], now + RETENTION_OF_GONE * 2, at(7));
    assert_eq!(statuses(&keeper), []);
    assert!(keeper.terms.is_empty(), "what is not shown is not remembered");
}
