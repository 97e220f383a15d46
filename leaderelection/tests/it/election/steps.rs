//! The state machine, one step after the other.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{
    Answer, Command, Effect, ElectionConfig, Fact, Input, Purpose, Request, RunOutcome, TermEndReason, WorkEnd,
};
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
use leaderelection::{LeaderElectionRecord, StoreErrorKind};
use leaderelection_test_support::play::Play;

use crate::support::record;

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn unhurried() -> ElectionConfig {
    ElectionConfig::new("a", SECOND * 15, SECOND * 10, SECOND * 2)
}

fn releasing() -> ElectionConfig {
    let mut rules = unhurried();
    rules.release_on_cancel = true;
    rules
}

/// A win that was answered with an error, and is seen to have been committed 50 ms before its window closes.
fn late_win(retry_after: Option<Duration>) -> Play {
    let mut play = Play::new(unhurried(), u32::MAX);
    play.handle(Input::Answer(Answer::Read(Ok(None))));
    let record = play.written().expect("nothing blocks a first write");
    play.pass(SECOND * 10 - Duration::from_millis(50) - retry_after.unwrap_or_default());
    play.fail(StoreErrorKind::Ambiguous, retry_after);
    if let Some(asked) = retry_after {
        assert_eq!(play.request(), None);
        play.pass(asked);
    }
    assert_eq!(play.request(), Some(Request::Read));
    let committed = VersionedRecord::new(record, Version::new("1"));
    play.handle(Input::Answer(Answer::Read(Ok(Some(committed)))));
    assert!(play.election.leading(play.now).is_some());
    play
}

#[test]
fn a_win_that_is_seen_late_is_renewed_at_once() {
    for asked in [None, Some(Duration::from_millis(30))] {
        let mut play = late_win(asked);
        play.handle(Input::Tick);
        // The window is not over for 50 ms, so the term has started.
        let late = late_win(asked);
        assert_eq!(late.purpose(), Some(Purpose::Renew), "waits out a pause after a failure");
    }
}

#[test]
fn no_request_goes_out_before_the_store_asked_for_it_whatever_the_failure() {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
    let asked = SECOND * 3;
    for kind in [Ambiguous, Conflict, Fatal, Rejected] {
        // A leader's renewal, a candidate's read and a candidate's write.
        let mut leader = Play::leader(unhurried());
        leader.pass(SECOND * 2);
        let mut reader = Play::new(unhurried(), 0);
        let mut writer = Play::new(unhurried(), 0);
        writer.handle(Input::Answer(Answer::Read(Ok(None))));
        for (what, play) in [("renewal", &mut leader), ("read", &mut reader), ("write", &mut writer)] {
            if what == "read" && kind == Conflict {
                continue;
            }
            assert!(play.request().is_some(), "{what}");
            play.fail(kind, Some(asked));
            assert_eq!(play.request(), None, "{what} {kind:?}");
            play.pass(asked - Duration::from_nanos(1));
            assert_eq!(play.request(), None, "{what} {kind:?}");
            let wake_at = play.election.wake_at().unwrap();
            play.now = wake_at.max(play.now);
            play.handle(Input::Tick);
            assert!(play.request().is_some(), "{what} {kind:?}");
        }
    }
}

/// A leader in the last moment of its first window, and its renewal of 2 s, which failed at 3 s with the order to send nothing for
/// 10 s. The window closes at 10 s, and a request takes 2.5 s at most.
fn silenced(kind: StoreErrorKind) -> (Play, LeaderElectionRecord) {
    let mut play = Play::leader(unhurried());
    play.pass(SECOND * 2);
    let renewal = play.written().expect("a renewal is due");
    play.pass(SECOND);
    play.fail(kind, Some(SECOND * 10));
    play.pass(SECOND * 9 / 2 - Duration::from_nanos(1));
    assert_eq!(play.request(), None, "{kind:?}");
    assert_eq!(play.election.wake_at(), Some(LocalInstant::default() + SECOND * 15 / 2), "{kind:?}");
    play.pass(Duration::from_nanos(1));
    (play, renewal)
}

#[test]
fn retry_after_beyond_the_term_allows_one_last_renewal() {
    for kind in [StoreErrorKind::Rejected, StoreErrorKind::Fatal] {
        let (mut play, _) = silenced(kind);
        assert_eq!(play.purpose(), Some(Purpose::Renew), "{kind:?}");
        play.handle(Input::Answer(Answer::Written(Ok(Version::new("2")))));
        // The store still wants silence, so the leader says as little as keeps its term.
        play.pass(SECOND * 11 / 2 - Duration::from_nanos(1));
        assert_eq!(play.request(), None, "{kind:?}");
        play.pass(Duration::from_nanos(1));
        assert_eq!(play.purpose(), Some(Purpose::Renew), "{kind:?}");
        assert!(play.election.leading(play.now).is_some());
    }
}

#[test]
fn retry_after_makes_a_leader_read_a_renewal_in_doubt_first() {
    for committed in [false, true] {
        let (mut play, renewal) = silenced(StoreErrorKind::Ambiguous);
        assert_eq!(play.request(), Some(Request::Read));
        let (first, version) = play.election.observed().expect("its own record");
        let (first, second) = ((first.clone(), version.clone()), (renewal, Version::new("2")));
        let (record, version) = if committed { second } else { first };
        play.handle(Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(record, version))))));
        assert_eq!(play.purpose(), (!committed).then_some(Purpose::Renew), "{committed}");
    }
}

#[test]
fn a_leader_refused_once_more_sends_nothing_until_its_term_ends() {
    for (first, second) in [(StoreErrorKind::Rejected, None), (StoreErrorKind::Ambiguous, Some(SECOND))] {
        let (mut play, _) = silenced(first);
        assert!(play.request().is_some());
        play.fail(StoreErrorKind::Rejected, second);
        play.pass(SECOND * 5 / 2 - Duration::from_nanos(1));
        assert_eq!(play.request(), None, "{first:?}");
        assert!(play.election.leading(play.now).is_some());
        play.pass(Duration::from_nanos(1));
        assert!(play.election.leading(play.now).is_none());
        assert_eq!(play.request(), None, "{first:?}");
    }
}

#[test]
fn a_release_is_sent_no_sooner_than_the_store_asked() {
    let mut play = Play::leader(releasing());
    play.pass(SECOND * 2);
    play.fail(StoreErrorKind::Rejected, Some(SECOND * 3));
    play.handle(Input::Command(Command::Stop));
    play.handle(Input::WorkEnded(WorkEnd::Complete));
    assert_eq!(play.request(), None);
    play.pass(SECOND * 3);
    assert_eq!(play.purpose(), Some(Purpose::Release));
}

#[test]
fn a_candidate_begins_no_sooner_than_the_store_asked_in_the_term_before() {
    let mut play = Play::leader(unhurried());
    play.pass(SECOND * 8);
    play.fail(StoreErrorKind::Rejected, Some(SECOND * 5));
    play.pass(SECOND * 2);
    play.handle(Input::WorkEnded(WorkEnd::Complete));
    play.handle(Input::Begin { stand_back: Duration::ZERO, ends_with_work: false, job: None });
    assert_eq!(play.request(), None);
    play.pass(SECOND * 3);
    assert_eq!(play.purpose(), Some(Purpose::Acquire), "over our own record of before");
}

#[test]
fn a_lock_that_is_deleted_during_its_release_is_missed() {
    let mut play = Play::leader(releasing());
    play.handle(Input::Command(Command::Stop));
    play.handle(Input::WorkEnded(WorkEnd::Complete));
    assert_eq!(play.purpose(), Some(Purpose::Release));
    play.fail(StoreErrorKind::Conflict, None);
    assert_eq!(play.request(), Some(Request::Read));
    play.handle(Input::Answer(Answer::Read(Ok(None))));
    assert!(play.position(|effect| *effect == Effect::Fact(Fact::Vanished)) < play.effects.len() - 1);
    assert!(matches!(play.effects.last(), Some(Effect::Finished(_))));
}

#[test]
fn leadership_stops_before_the_next_leader_is_told() {
    let mut play = Play::leader(unhurried());
    play.pass(SECOND * 2);
    play.fail(StoreErrorKind::Conflict, None);
    let other = VersionedRecord::new(record("b", SECOND * 15, 1), Version::new("2"));
    play.handle(Input::Answer(Answer::Read(Ok(Some(other)))));
    let stop = play.position(|effect| matches!(effect, Effect::Stop { reason: TermEndReason::TakenOver { .. }, .. }));
    let changed = play.position(|effect| matches!(effect, Effect::Fact(Fact::LeaderChanged { .. })));
    assert!(stop < changed);
}

#[test]
fn work_is_dropped_in_time_or_abandoned() {
    let mut play = Play::leader(releasing());
    play.handle(Input::Command(Command::StepDown));
    let margin = SECOND * 5 / 8;
    let drop_by = LocalInstant::default() + SECOND * 15 - margin;
    let stop = Effect::Stop { fencing_token: 1, reason: TermEndReason::SteppedDown, drop_by };
    assert_eq!(play.effects, [stop]);
    assert_eq!(play.election.wake_at(), Some(drop_by));
    play.pass(SECOND * 15 - margin);
    assert_eq!(play.effects, [Effect::DropWork]);
    play.pass(margin);
    let outcome = RunOutcome::Led { fencing_token: 1.into(), reason: TermEndReason::SteppedDown };
    assert_eq!(play.effects, [Effect::Abandon, Effect::Finished(outcome)], "and is not released");
}

#[test]
fn a_term_that_was_over_before_its_work_began_is_competed_for_again() {
    let mut play = Play::leader(unhurried());
    play.now = play.now + SECOND * 20;
    play.handle(Input::WorkEnded(WorkEnd::NotBegun));
    assert!(matches!(play.effects[0], Effect::Stop { reason: TermEndReason::RenewDeadline, .. }), "{:?}", play.effects);
    assert_eq!(play.purpose(), Some(Purpose::Acquire));
    play.handle(Input::Command(Command::Stop));
    assert_eq!(play.effects, [Effect::Finished(RunOutcome::NeverLed)]);
}

#[test]
fn a_write_in_its_own_window_is_known_again_however_many_came_after_it() {
    let mut play = Play::leader(unhurried());
    play.pass(SECOND * 2);
    let first = play.written().expect("a renewal");
    let held = VersionedRecord::new(record("a", SECOND * 15, 0), Version::new("1"));
    for _ in 0..60 {
        play.fail(StoreErrorKind::Ambiguous, None);
        assert_eq!(play.request(), Some(Request::Read));
        play.handle(Input::Answer(Answer::Read(Ok(Some(held.clone())))));
        assert_eq!(play.purpose(), Some(Purpose::Renew));
    }
    play.fail(StoreErrorKind::Ambiguous, None);
    play.handle(Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(first, Version::new("2")))))));
    assert!(play.election.leading(play.now).is_some(), "{:?}", play.effects);
}

#[test]
fn a_request_to_hand_over_does_not_renew_a_dead_holders_lease() {
    let mut play = Play::new(unhurried(), 0);
    let seen = |preferred: Option<&str>, version: &str| {
        let mut record = record("dead", SECOND * 15, 3);
        record.preferred_holder = preferred.map(str::to_owned);
        Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(record, Version::new(version))))))
    };
    play.handle(seen(None, "1"));
    // Operators ask for other candidates again and again.
    let mut version = 1;
    for preferred in ["b", "c"].into_iter().cycle() {
        let wake_at = play.election.wake_at().expect("a candidate goes on");
        play.now = wake_at;
        play.handle(Input::Tick);
        if play.purpose() == Some(Purpose::Acquire) {
            break;
        }
        version += 1;
        play.handle(seen(Some(preferred), &version.to_string()));
        assert!(version < 40, "is kept out forever");
    }
    // The lease, and one more lease during which only the named candidates may acquire.
    assert_eq!(play.now, LocalInstant::default() + SECOND * 30);
    // The candidate that is asked for does not wait for the others.
    let mut named = Play::new(unhurried(), 0);
    named.handle(seen(None, "1"));
    named.pass(SECOND * 14);
    named.handle(seen(Some("a"), "2"));
    named.pass(SECOND);
    assert_eq!(named.purpose(), Some(Purpose::Acquire));
}

#[test]
fn an_absurd_token_blocks_only_while_the_record_shows_it() {
    let mut play = Play::new(unhurried(), 0);
    let seen = |token, version: &str| {
        let found = VersionedRecord::new(record("", SECOND, token), Version::new(version));
        Input::Answer(Answer::Read(Ok(Some(found))))
    };
    play.handle(seen((1 << 53) - 1, "1"));
    assert_eq!(play.request(), None);
    assert!(play.effects.contains(&Effect::Fact(Fact::TokensExhausted)));
    play.pass(SECOND * 5);
    assert_eq!(play.request(), Some(Request::Read));
    play.handle(seen(7, "2"));
    assert_eq!(play.written().map(|record| record.leader_transitions), Some(8));
}

#[test]
fn a_lease_of_the_longest_duration_there_is_overflows_nothing() {
    let mut rules = unhurried();
    rules.lease_duration = Duration::MAX;
    let mut play = Play::new(rules, u32::MAX);
    let mut record = record("b", Duration::MAX, 1);
    record.preferred_holder = Some("c".to_owned());
    play.handle(Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(record, Version::new("1")))))));
    assert_eq!(play.request(), None);
}

#[test]
fn a_window_that_was_seen_to_be_over_is_not_led_on() {
    let mut play = Play::leader(releasing());
    play.pass(SECOND * 2);
    play.handle(Input::Answer(Answer::Written(Ok(Version::new("2")))));
    assert!(matches!(play.effects[..], [Effect::Extend(_)]));
    play.handle(Input::Expired);
    assert!(matches!(play.effects[..], [Effect::Stop { reason: TermEndReason::RenewDeadline, .. }]));
    assert_eq!(play.election.leading(play.now), None);
}

#[test]
fn a_win_that_came_to_nothing_begins_no_term_for_a_job_that_is_done() {
    let mut play = Play::of(unhurried(), 0, Some("today".parse().unwrap()));
    play.handle(Input::Answer(Answer::Read(Ok(None))));
    // The answer comes when the window is over, so the lease is renewed first.
    play.now = play.now + SECOND * 10;
    play.handle(Input::Answer(Answer::Written(Ok(Version::new("1")))));
    assert_eq!(play.purpose(), Some(Purpose::Renew));
    play.fail(StoreErrorKind::Conflict, None);
    assert_eq!(play.request(), Some(Request::Read));
    let json = r#"{"holderIdentity":"","leaseDurationSeconds":1,"leaderTransitions":1,"completedJobs":["today"]}"#;
    let released = LeaderElectionRecord::from_json(json.as_bytes(), DEFAULT_MAX_LEASE_DURATION).unwrap();
    play.handle(Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(released, Version::new("2")))))));
    assert_eq!(play.request(), None);
    assert!(play.effects.contains(&Effect::Finished(RunOutcome::JobDone { fencing_token: None })));
}

/// Of several objects, one may show the mark after the others were taken.
#[test]
fn a_late_win_beside_the_mark_of_its_job_begins_no_term() {
    let mut play = Play::of(unhurried(), 0, Some("today".parse().unwrap()));
    play.handle(Input::Answer(Answer::Read(Ok(None))));
    let mut won = play.written().expect("nothing blocks a first write");
    play.now = play.now + SECOND * 10;
    play.handle(Input::Answer(Answer::Written(Ok(Version::new("1")))));
    assert_eq!(play.purpose(), Some(Purpose::Renew));
    play.fail(StoreErrorKind::Conflict, None);
    assert_eq!(play.request(), Some(Request::Read));
    won.unknown.set("completedJobs", &["today"]);
    play.handle(Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(won, Version::new("2")))))));
    assert_eq!(play.request(), None);
    assert!(play.effects.contains(&Effect::Finished(RunOutcome::JobDone { fencing_token: None })));
}

/// A leader whose renewal is unanswered, and the record of that renewal.
fn doubting() -> (Play, LeaderElectionRecord) {
    let mut play = Play::leader(releasing());
    play.pass(SECOND * 2);
    let renewal = play.written().expect("a renewal is due");
    play.fail(StoreErrorKind::Ambiguous, None);
    assert_eq!(play.request(), Some(Request::Read));
    (play, renewal)
}

#[test]
fn a_write_that_somebody_has_changed_is_no_longer_ours() {
    type Change = fn(&mut LeaderElectionRecord);
    let changes: [(&str, Change); 4] = [
        ("emptied", |record| record.holder_identity.clear()),
        ("another holder", |record| record.holder_identity = "b".to_owned()),
        ("another token", |record| record.leader_transitions += 1),
        ("another lease", |record| record.lease_duration = SECOND),
    ];
    for (what, change) in changes {
        let (mut play, mut record) = doubting();
        change(&mut record);
        play.handle(Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(record, Version::new("2")))))));
        assert!(play.election.leading(play.now).is_none(), "{what}: leads by a record that somebody else wrote");
    }
    let (mut play, record) = doubting();
    play.handle(Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(record, Version::new("2")))))));
    assert!(play.election.leading(play.now).is_some());
}

#[test]
fn a_release_does_not_name_its_own_holder_as_the_next_leader() {
    let (mut play, mut record) = doubting();
    record.preferred_holder = Some("a".to_owned());
    play.handle(Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(record, Version::new("2")))))));
    play.handle(Input::Command(Command::Stop));
    play.handle(Input::WorkEnded(WorkEnd::Complete));
    let released = play.written().expect("a release");
    // All others would leave the free lease to a candidate that has stopped.
    assert_eq!((released.holder_identity.as_str(), released.preferred_holder), ("", None));
}
