//! Locks that move: requests one after the other, members that take nothing, and stores that list in their own spelling.

use std::time::Duration;

use leaderelection::TermEndReason;
use leaderelection::election::{self, Command};
use leaderelection::sessions::machine::{Effect, Input, LockId, SessionConfig};

use super::balanced;
use super::fleet::{Fleet, rules};

const LOCKS: u32 = 100;

#[test]
fn a_lock_that_was_handed_over_is_handed_back_within_the_lease() {
    let (mut fleet, lock) = (Fleet::default(), LockId(0));
    fleet.join(rules("a"), 1);
    fleet.pass(1);
    fleet.join(rules("b"), 1);
    // Until the first knows the second.
    fleet.pass(35);
    for (from, to) in [(0, "b"), (1, "a"), (0, "b")] {
        assert_eq!(fleet.led_by(from, 1), 1, "before it moves to {to}");
        fleet.give(from, Input::Command { lock, command: Command::TransferTo(to.to_owned()) });
        fleet.pass(4);
    }
    assert_eq!(fleet.led_by(1, 1), 1);
}

#[test]
fn a_lock_handed_over_to_an_ended_member_waits_for_no_lease() {
    let (mut fleet, lock) = (Fleet::default(), LockId(0));
    for member in ["a", "b", "c"] {
        fleet.join(rules(member), 1);
        fleet.pass(1);
    }
    fleet.pass(35);
    fleet.members[2].campaigns = false;
    fleet.give(2, Input::Stop);
    // The leader has not seen that yet.
    fleet.give(0, Input::Command { lock, command: Command::TransferTo("c".to_owned()) });
    assert_eq!(fleet.led_by(0, 1), 0);
    fleet.pass(7);
    assert_eq!(fleet.led_by(0, 1) + fleet.led_by(1, 1), 1);
}

#[test]
fn a_lock_waits_for_a_member_whose_next_session_is_unknown() {
    let (mut fleet, lock) = (Fleet::default(), LockId(0));
    for member in ["a", "b", "c"] {
        fleet.join(rules(member), 1);
        fleet.pass(1);
    }
    fleet.pass(35);
    fleet.members[1].campaigns = false;
    fleet.give(1, Input::Stop);
    fleet.pass(30);
    // Its electors do not compete yet.
    let restarted = fleet.join(rules("b"), 0);
    fleet.hidden_from = Some((2, fleet.session_of(restarted)));
    fleet.give(0, Input::Command { lock, command: Command::TransferTo("b".to_owned()) });
    fleet.pass(7);
    assert_eq!(fleet.led_by(0, 1) + fleet.led_by(2, 1), 0);
    fleet.pass(30);
    assert_eq!(fleet.led_by(0, 1) + fleet.led_by(2, 1), 1);
}

#[test]
fn a_lock_is_handed_back_when_the_member_that_gave_it_up_takes_it() {
    let [lease, deadline, retry] = [60, 40, 2].map(Duration::from_secs);
    let mut slow = SessionConfig::new(election::ElectionConfig::new("a", lease, deadline, retry));
    slow.balance = true;
    let mut fleet = Fleet::default();
    fleet.join(slow, LOCKS);
    fleet.pass(1);
    fleet.join(balanced("b"), LOCKS);
    fleet.pass(200);
    let (share, lock) = (fleet.locks_of(0, LOCKS), LockId(fleet.locks_of(0, LOCKS)[0]));
    // The one that gives the lock up stands back for its lease, which is longer than that of the other.
    fleet.members[0].campaigns = false;
    fleet.give(0, Input::Command { lock, command: Command::StepDown });
    fleet.give(0, Input::Compete { lock, stand_back: lease, ends_with_work: false, job: None, one_attempt: false });
    fleet.pass(5);
    for second in 5..55 {
        assert!(fleet.locks_of(1, LOCKS).contains(&lock.0), "nobody leads the lock after {second} s");
        fleet.pass(1);
    }
    fleet.pass(40);
    assert_eq!(fleet.locks_of(0, LOCKS), share);
}

#[test]
fn a_member_that_takes_nothing_blocks_few_locks_briefly() {
    let mut fleet = Fleet::default();
    fleet.join(balanced("a"), LOCKS);
    fleet.pass(1);
    // The session lives, and no elector of it competes.
    fleet.join(balanced("b"), 0);
    fleet.pass(80);
    assert_eq!(fleet.led_by(0, LOCKS), LOCKS as usize);
    let is_hand_over = |effect: &&Effect| {
        matches!(
            effect,
            Effect::Lock { effect: election::Effect::Stop { reason: TermEndReason::Transferred { .. }, .. }, .. }
        )
    };
    let handed_over = fleet.members[0].effects.iter().filter(is_hand_over).count();
    assert!((1..=16).contains(&handed_over), "{handed_over} hand-overs");
}

#[test]
fn a_share_is_right_also_if_locks_come_to_another_member_later() {
    let mut fleet = Fleet::default();
    fleet.join(balanced("a"), LOCKS);
    fleet.pass(1);
    fleet.join(balanced("b"), LOCKS);
    fleet.pass(60);
    let share = fleet.locks_of(1, LOCKS);
    // The other member takes some of them, because an operator asks for it.
    for lock in share.iter().take(10).copied().map(LockId) {
        fleet.give(1, Input::Command { lock, command: Command::TransferTo("a".to_owned()) });
    }
    fleet.pass(5);
    assert_eq!(fleet.led_by(1, LOCKS), share.len() - 10);
    fleet.pass(60);
    assert_eq!(fleet.locks_of(1, LOCKS), share);
}

#[test]
fn a_share_moves_whenever_the_search_for_it_begins() {
    const R: Duration = Duration::from_secs(2);
    for sixteenths in 0..16 {
        let mut fleet = Fleet::default();
        fleet.join(balanced("a"), LOCKS);
        fleet.pass_exactly(R);
        fleet.join(balanced("b"), LOCKS);
        fleet.pass_exactly(R);
        assert_eq!(fleet.led_by(0, LOCKS), LOCKS as usize);
        // The renewal after a late answer comes that much later, and so do all others.
        fleet.own_answers_take = R + R / 16 * sixteenths;
        fleet.pass_exactly(R);
        // A batch goes out R/8 before a renewal at the earliest, and after the answer to the one before.
        fleet.own_answers_take = R * 3 / 4;
        fleet.pass_exactly(R * 20);
        let moved = fleet.led_by(1, LOCKS);
        assert!((30..70).contains(&moved), "{moved} locks have moved, with renewals {sixteenths}/16 R later");
    }
}

#[test]
fn a_dead_session_ends_even_if_listings_spell_versions_anew() {
    let mut fleet = Fleet { spells_otherwise: true, ..Fleet::default() };
    // Sessions are listed more often than they expire.
    let listing = |identity| {
        let mut rules = rules(identity);
        rules.reads_per_listing = 0;
        rules
    };
    fleet.join(listing("a"), LOCKS);
    fleet.pass(1);
    fleet.join(listing("b"), LOCKS);
    fleet.pass(10);
    fleet.members[0].alive = false;
    fleet.pass(25);
    assert_eq!(fleet.led_by(1, LOCKS), LOCKS as usize);
}

#[test]
fn a_member_that_stops_ends_its_session_when_the_others_read() {
    const R: Duration = Duration::from_secs(2);
    let stop = |rules_of: fn(&str) -> SessionConfig, is_alone: bool| {
        let mut fleet = Fleet::default();
        fleet.join(rules_of("a"), LOCKS);
        fleet.pass_exactly(R / 4);
        if !is_alone {
            fleet.join(rules_of("b"), LOCKS);
        }
        fleet.pass_exactly(R * 20);
        fleet.members[0].campaigns = false;
        let (session, asked_at) = (fleet.session_of(0), fleet.now);
        let renewed_at = fleet.renewed_at[&session];
        fleet.give(0, Input::Stop);
        while fleet.led_by(0, LOCKS) > 0 {
            fleet.pass_exactly(Duration::from_millis(1));
        }
        let ended_at = fleet.now;
        while !is_alone && fleet.led_by(1, LOCKS) < LOCKS as usize {
            fleet.pass_exactly(Duration::from_millis(1));
        }
        assert!(fleet.now <= ended_at + if ended_at == asked_at { R } else { R / 4 });
        (ended_at.saturating_since(asked_at), ended_at.saturating_since(renewed_at))
    };
    let (_, after_renewal) = stop(balanced, false);
    assert!(after_renewal >= R / 8 * 7 && after_renewal <= R / 8 * 7 + Duration::from_millis(1), "{after_renewal:?}");
    // Nobody waits for the locks, or the members do not balance.
    assert_eq!(stop(balanced, true).0, Duration::ZERO);
    assert_eq!(stop(rules, false).0, Duration::ZERO);
}
