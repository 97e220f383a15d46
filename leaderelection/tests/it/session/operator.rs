//! Locks that an operator changes by hand.

use std::time::Duration;

use leaderelection::election::{self, Command};
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::MAX_LEADER_TRANSITIONS;
use leaderelection::sessions::machine::{Effect, Fact, Input, LockId, Refusal, SessionConfig};
use leaderelection::{LeaderElectionRecord, TermEndReason};

use super::fleet::{Fleet, rules};

const LOCK: LockId = LockId(0);

/// Writes a released record, as an operator does.
fn write(fleet: &mut Fleet, version: usize, token: u64, next: Option<String>) {
    let mut record = LeaderElectionRecord::new("", Duration::from_secs(1));
    (record.leader_transitions, record.preferred_holder) = (token, next);
    fleet.locks.insert(LOCK, VersionedRecord::new(record, Version::new(format!("by hand {version}"))));
}

#[test]
fn a_lock_is_led_again_after_an_absurd_token_was_put_right() {
    let mut fleet = Fleet::default();
    write(&mut fleet, 0, MAX_LEADER_TRANSITIONS, None);
    fleet.join(rules("a"), 1);
    fleet.pass(60);
    assert_eq!(fleet.led_by(0, 1), 0, "no token is left");
    write(&mut fleet, 1, 3, None);
    fleet.pass(60);
    assert_eq!(fleet.led_by(0, 1), 1);
    assert_eq!(fleet.locks[&LOCK].record.leader_transitions, 4);
}

#[test]
fn a_lock_is_led_again_after_an_absurd_token_was_deleted() {
    let mut fleet = Fleet::default();
    write(&mut fleet, 0, MAX_LEADER_TRANSITIONS, None);
    fleet.join(rules("a"), 1);
    fleet.pass(60);
    assert_eq!(fleet.led_by(0, 1), 0, "no token is left");
    fleet.locks.clear();
    fleet.pass(120);
    assert_eq!(fleet.led_by(0, 1), 1);
}

#[test]
fn a_leader_of_a_spoilt_or_released_lock_ends_its_term_and_says_why() {
    for is_spoilt in [true, false] {
        let mut fleet = Fleet::default();
        fleet.join(rules("a"), 1);
        fleet.pass(1);
        fleet.members[0].campaigns = false;
        fleet.is_spoilt = is_spoilt;
        if !is_spoilt {
            write(&mut fleet, 0, 0, None);
        }
        fleet.pass(31);
        let reasons = fleet.members[0].effects.iter().filter_map(|effect| match effect {
            Effect::Lock { effect: election::Effect::Stop { reason, .. }, .. } => Some(reason),
            _ => None,
        });
        let expected = if is_spoilt { TermEndReason::Unreadable } else { TermEndReason::Emptied };
        assert_eq!(reasons.collect::<Vec<_>>(), [&expected]);
        let refusal = Fact::Refused { lock: LOCK, refusal: Refusal::Unreadable };
        assert_eq!(fleet.members[0].facts.contains(&refusal), is_spoilt);
    }
}

#[test]
fn the_count_of_requests_for_the_lease_stays_in_every_record() {
    let mut fleet = Fleet::default();
    write(&mut fleet, 0, 3, None);
    if let Some(found) = fleet.locks.get_mut(&LOCK) {
        found.record.failbacks = 5;
    }
    fleet.join(rules("a"), 1);
    fleet.pass(60);
    assert_eq!((fleet.led_by(0, 1), fleet.locks[&LOCK].record.failbacks), (1, 5));
    fleet.members[0].campaigns = false;
    fleet.give(0, Input::Command { lock: LOCK, command: Command::Stop });
    fleet.pass(5);
    let record = &fleet.locks[&LOCK].record;
    assert_eq!((record.is_released(), record.failbacks), (true, 5));
}

#[test]
fn requests_without_end_do_not_bar_a_free_lock() {
    let mut fleet = Fleet::default();
    write(&mut fleet, 0, 3, Some("gone".to_owned()));
    fleet.join(rules("a"), 1);
    for request in 1..40 {
        fleet.pass(2);
        if fleet.led_by(0, 1) == 1 {
            // One such wait, and not one for each request.
            return assert!((7..12).contains(&request), "{request}");
        }
        write(&mut fleet, request, 3, Some(format!("gone {request}")));
    }
    panic!("nobody leads the lock");
}

#[test]
fn a_request_for_the_leader_itself_keeps_nobody_from_the_lock_after_it() {
    let mut fleet = Fleet::default();
    for member in ["a", "b"] {
        fleet.join(rules(member), 1);
    }
    fleet.pass(60);
    let leader = (0..2).find(|member| fleet.led_by(*member, 1) == 1).expect("a leader");
    let mut asked = fleet.locks[&LOCK].record.clone();
    asked.preferred_holder = Some(asked.holder_identity.clone());
    fleet.locks.insert(LOCK, VersionedRecord::new(asked, Version::new("by hand")));
    fleet.pass(60);
    assert_eq!(fleet.led_by(leader, 1), 1);
    fleet.members[leader].campaigns = false;
    fleet.give(leader, Input::Command { lock: LOCK, command: Command::StepDown });
    fleet.pass(5);
    assert_eq!(fleet.led_by(1 - leader, 1), 1);
}

#[test]
fn a_lock_that_was_seen_free_and_whose_object_vanished_may_have_a_leader() {
    let mut fleet = Fleet::default();
    write(&mut fleet, 0, 3, Some("b".to_owned()));
    fleet.join(rules("a"), 1);
    fleet.pass(1);
    fleet.join(rules("b"), 1);
    assert_eq!(fleet.led_by(1, 1), 1);
    // The other member knows only that the lock was free.
    fleet.locks.clear();
    for second in 0..120 {
        fleet.pass(1);
        assert!(fleet.led_by(0, 1) + fleet.led_by(1, 1) <= 1, "two leaders after {second} s");
    }
    assert_eq!(fleet.led_by(0, 1) + fleet.led_by(1, 1), 1);
}

#[test]
fn a_lock_that_was_spoilt_and_whose_object_vanished_may_have_a_leader() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 1);
    fleet.pass(1);
    fleet.is_spoilt = true;
    fleet.join(rules("b"), 1);
    fleet.pass(5);
    // An operator removes what is no record, before the leader has read it.
    fleet.locks.clear();
    fleet.is_spoilt = false;
    for second in 0..120 {
        fleet.pass(1);
        assert!(fleet.led_by(0, 1) + fleet.led_by(1, 1) <= 1, "two leaders after {second} s");
    }
    assert_eq!(fleet.led_by(0, 1) + fleet.led_by(1, 1), 1);
}

#[test]
fn a_vanished_lock_is_created_when_its_leader_must_have_noticed() {
    const LOCKS: u32 = 100;
    let seconds = Duration::from_secs;
    // Four pages of 3 s each are more than half of the deadline.
    for (pages_take, listings_take) in [(Duration::ZERO, Duration::ZERO), (seconds(3), seconds(12) * 3)] {
        let mut fleet = Fleet { page_size: 25, pages_take, ..Fleet::default() };
        fleet.join(rules("a"), LOCKS);
        fleet.pass_exactly(seconds(20));
        fleet.join(rules("b"), LOCKS);
        fleet.pass_exactly(seconds(40));
        fleet.locks.remove(&LOCK);
        fleet.members[0].alive = false;
        fleet.members[1].effects.clear();
        let nobody = election::Effect::Fact(election::Fact::LeaderChanged { leader: None });
        let is_missed = Effect::Lock { lock: LOCK, effect: nobody };
        while !fleet.members[1].effects.contains(&is_missed) {
            fleet.pass_exactly(Duration::from_millis(1));
        }
        let missed_at = fleet.now;
        while !fleet.locks_of(1, LOCKS).contains(&LOCK.0) {
            fleet.pass_exactly(Duration::from_millis(1));
        }
        // The pause between polls by the slowest clock, and two leases.
        let least = seconds(30) * 3 / 2 + seconds(15) * 2 + listings_take;
        let waited = fleet.now.saturating_since(missed_at);
        assert!(waited >= least && waited < least + seconds(2), "{waited:?}, and not {least:?}");
    }
}

/// Lets a member with a lease of 60 s be cut off, and deletes its session before others have read it. Returns the seconds until
/// another member leads its lock, after `spoil` has changed the record of the lock. That member may know a third with that lease.
fn led_after_a_deletion(has_third: bool, spoil: impl FnOnce(&mut LeaderElectionRecord)) -> usize {
    let [lease, deadline, retry] = [60, 40, 2].map(Duration::from_secs);
    let slow = |identity| SessionConfig::new(election::ElectionConfig::new(identity, lease, deadline, retry));
    let mut fleet = Fleet::default();
    let owner = fleet.join(slow("a"), 1);
    fleet.pass(1);
    assert_eq!(fleet.led_by(owner, 1), 1);
    let session = fleet.session_of(owner);
    fleet.members[owner].alive = false;
    fleet.sessions.remove(&session);
    spoil(&mut fleet.locks.get_mut(&LOCK).unwrap().record);
    if has_third {
        fleet.join(slow("c"), 0);
    }
    let other = fleet.join(rules("b"), 1);
    let led = |_: &usize| {
        fleet.pass(1);
        fleet.led_by(other, 1) == 1
    };
    (1..200).find(led).expect("a leader")
}

#[test]
fn a_deleted_session_that_nobody_else_has_read_counts_with_its_own_lease() {
    let seconds = led_after_a_deletion(false, |_| {});
    assert!((60..70).contains(&seconds), "{seconds}");
    let short = led_after_a_deletion(true, |lock| lock.unknown.set("sessionLeaseMillis", &20_000));
    assert!((20..30).contains(&short), "{short}");
}

#[test]
fn a_deleted_session_counts_with_the_longest_known_lease() {
    let seconds = led_after_a_deletion(true, |lock| lock.unknown.set("sessionLeaseMillis", &"?"));
    assert!((60..70).contains(&seconds), "{seconds}");
}

#[test]
fn a_lock_with_an_incompatible_record_is_taken_after_its_deletion() {
    let of = |identity, purpose: &str| {
        let mut rules = rules(identity);
        rules.election.service = Some(purpose.to_owned());
        rules
    };
    let mut fleet = Fleet::default();
    let incompatible = fleet.join(of("a", "mail"), 1);
    fleet.pass(1);
    let other = fleet.join(of("b", "billing"), 1);
    fleet.pass(40);
    assert_eq!((fleet.led_by(incompatible, 1), fleet.led_by(other, 1)), (1, 0));
    fleet.members[incompatible].alive = false;
    fleet.locks.clear();
    fleet.pass(200);
    assert_eq!(fleet.led_by(other, 1), 1);
}
