use std::ffi::OsStr;

use clap::Command;
use clap::builder::TypedValueParser as _;

use super::*;
use crate::lock::PrefixUrl;
use crate::lock::view::View;

fn prefix() -> PrefixUrl {
    PrefixUrl::parser().parse_ref(&Command::new("dashboard"), None, OsStr::new("memory:")).unwrap()
}

fn row(standing: Standing, holder: &str, token: u64) -> Row {
    let mut record = leaderelection::LeaderElectionRecord::new(holder, Duration::from_secs(15));
    record.leader_transitions = token;
    let view = View::of_record(&prefix().at("a"), &record);
    Row { key: "a".to_owned(), view, standing, observed: None, store_age: None, first_seen: None, doubt: None }
}

fn at(seconds: u64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn terms_begin_and_end_with_what_the_looks_show() {
    let mut terms = Vec::new();
    for (second, standing, holder, token) in [
        (0, Standing::Held, "alpha", 1),
        (5, Standing::Alive, "alpha", 1),
        (10, Standing::Unreachable, "", 0),
        (15, Standing::HandingOver, "alpha", 1),
        (20, Standing::Alive, "beta", 2),
        (25, Standing::Alive, "beta", 3),
        (30, Standing::Expired, "beta", 3),
        (35, Standing::Expired, "beta", 3),
        (40, Standing::Alive, "alpha", 4),
        (45, Standing::Free, "", 4),
        (50, Standing::Free, "", 4),
    ] {
        record(&mut terms, &row(standing, holder, token), at(second));
    }
    let seen: Vec<_> =
        terms.iter().map(|term| (term.who.as_str(), term.from, term.until, term.end.as_deref().unwrap())).collect();
    assert_eq!(
        seen,
        [
            ("alpha", at(0), Some(at(20)), "taken over"),
            ("beta", at(20), Some(at(25)), "taken over"),
            ("beta", at(25), Some(at(30)), "not renewed in time"),
            ("alpha", at(40), Some(at(45)), "released"),
        ]
    );
    for token in 5..50 {
        record(&mut terms, &row(Standing::Alive, "alpha", token), at(100));
    }
    assert_eq!(terms.len(), REMEMBERED);
}

#[tokio::test]
async fn a_lock_that_was_deleted_under_its_holder_is_shown_for_a_while() {
    let survey = Survey::open(prefix(), Duration::from_secs(1)).await.unwrap();
    let mut keeper = Keeper::new(survey);
    let now = LocalInstant::from_nanos(0);
    let standings = |keeper: &Keeper| keeper.board.locks.iter().map(|lock| lock.row.standing).collect::<Vec<_>>();
    keeper.take_in(vec![row(Standing::Free, "", 1)], now, at(0));
    keeper.take_in(vec![], now, at(1));
    assert_eq!(standings(&keeper), [], "nobody misses a free lock");
    keeper.take_in(vec![row(Standing::Alive, "alpha", 1)], now, at(2));
    keeper.take_in(vec![], now, at(3));
    keeper.take_in(vec![], now + MOURNED / 2, at(4));
    assert_eq!(standings(&keeper), [Standing::Absent]);
    assert_eq!(keeper.board.locks[0].terms[0].end.as_deref(), Some("the object was deleted"));
    keeper.take_in(vec![row(Standing::Alive, "alpha", 1)], now + MOURNED / 2, at(5));
    assert_eq!(standings(&keeper), [Standing::Alive]);
    keeper.take_in(vec![], now + MOURNED / 2, at(6));
    keeper.take_in(vec![], now + MOURNED * 2, at(7));
    assert_eq!(standings(&keeper), []);
    assert!(keeper.terms.is_empty(), "what is not shown is not remembered");
}
