//! The state machine of sessions: what leading costs, and who takes what.

mod crash;
mod ended;
mod fleet;
mod listing;
mod moving;
mod old_reads;
mod opening;
mod operator;
mod peer_feed;
mod unreadable;

use std::time::Duration;

use fleet::{Fleet, Requests, rules};
use leaderelection::election::{self, Command, WorkEnd};
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::sessions::machine::{Effect, Fact, Input, LockId, Refusal, SessionConfig};
use leaderelection::{LeaderElectionRecord, StoreErrorKind, TermEndReason};

const HOUR: u64 = 3600;

#[test]
fn leading_ten_thousand_locks_costs_what_leading_one_costs() {
    let mut of = [1, 10_000].map(|locks| {
        let mut fleet = Fleet::default();
        fleet.join(rules("a"), locks);
        fleet.pass(10);
        assert_eq!(fleet.led_by(0, locks), locks as usize);
        fleet.requests = Requests::default();
        fleet.pass(HOUR);
        fleet.requests
    });
    for requests in &mut of {
        assert_eq!((requests.session_writes, requests.lock_writes), (1_800, 0));
        // Every 30 s: the sessions, and the locks.
        assert_eq!(requests.reads + requests.listings, 240, "{requests:?}");
    }
}

#[test]
fn a_leader_whose_work_is_complete_leads_on() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 2);
    fleet.pass(1);
    fleet.give(0, Input::WorkEnded { lock: LockId(0), end: WorkEnd::Complete });
    fleet.members[0].effects.clear();
    // The reads of the locks show nothing new, and so does a request of others for something else.
    fleet.pass(100);
    let is_stop = |effect: &Effect| matches!(effect, Effect::Lock { effect: election::Effect::Stop { .. }, .. });
    assert!(!fleet.members[0].effects.iter().any(is_stop));
    assert_eq!(fleet.led_by(0, 2), 2);
    // The release of the session waits for the other work alone.
    (fleet.members[0].works_on, fleet.members[0].campaigns) = (true, false);
    fleet.give(0, Input::Stop);
    assert!(fleet.sessions.values().all(|session| !session.record.is_released()));
    fleet.give(0, Input::WorkEnded { lock: LockId(1), end: WorkEnd::Complete });
    assert!(fleet.sessions.values().all(|session| session.record.is_released()));
}

#[test]
fn one_write_frees_all_locks_after_all_work_has_ended() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 100);
    fleet.pass(1);
    fleet.members[0].works_on = true;
    fleet.requests = Requests::default();
    fleet.members[0].campaigns = false;
    fleet.give(0, Input::Stop);
    for lock in 0..100 {
        assert_eq!(fleet.requests, Requests::default(), "{lock} works have ended");
        assert_eq!(fleet.led_by(0, 100), 0);
        fleet.give(0, Input::WorkEnded { lock: LockId(lock), end: WorkEnd::Complete });
    }
    assert_eq!(fleet.requests, Requests { session_writes: 1, ..Requests::default() });
    assert!(fleet.sessions.values().all(|session| session.record.is_released()));
    assert_eq!(fleet.members[0].effects.last(), Some(&Effect::Ended));
    // The locks still name the session. It has ended, so another process takes all of them at once.
    fleet.members[0].alive = false;
    fleet.join(rules("b"), 100);
    fleet.pass(1);
    assert_eq!(fleet.led_by(1, 100), 100);
    assert!(fleet.locks.values().all(|lock| lock.record.leader_transitions == 2));
}

#[test]
fn one_write_ends_a_dead_session_and_frees_its_locks() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 50);
    fleet.pass(1);
    fleet.join(rules("b"), 50);
    fleet.pass(10);
    assert_eq!((fleet.led_by(0, 50), fleet.led_by(1, 50)), (50, 0));
    fleet.members[0].alive = false;
    fleet.pass(12);
    assert_eq!(fleet.led_by(1, 50), 0);
    fleet.pass(8);
    assert_eq!(fleet.led_by(1, 50), 50);
    let dead: Vec<_> = fleet.sessions.values().filter(|session| session.record.is_released()).collect();
    assert_eq!(dead.len(), 1);
}

/// Returns the rules of a member that balances its share.
fn balanced(identity: &str) -> SessionConfig {
    let mut rules = rules(identity);
    rules.balance = true;
    rules
}

/// Returns the rules of a member that balances its share, and lists the sessions.
fn listing(identity: &str) -> SessionConfig {
    let mut rules = balanced(identity);
    rules.reads_per_listing = 0;
    rules
}

#[test]
fn a_member_that_joins_takes_its_share_and_no_more() {
    let mut fleet = Fleet::default();
    fleet.join(balanced("a"), 100);
    fleet.pass(1);
    fleet.join(balanced("b"), 100);
    fleet.pass(45);
    let before = fleet.led_by(0, 100);
    assert!((35..=65).contains(&before), "{before}");
    let (of_a, of_b) = (fleet.locks_of(0, 100), fleet.locks_of(1, 100));
    assert_eq!(of_a.len() + of_b.len(), 100);
    let third = fleet.join(balanced("c"), 100);
    fleet.pass(45);
    assert!((20..=47).contains(&fleet.led_by(third, 100)), "{}", fleet.led_by(third, 100));
    assert!(fleet.locks_of(0, 100).iter().all(|lock| of_a.contains(lock)));
    assert!(fleet.locks_of(1, 100).iter().all(|lock| of_b.contains(lock)));
    // What the third leaves goes back, and nothing else moves.
    let (kept_a, kept_b) = (fleet.locks_of(0, 100), fleet.locks_of(1, 100));
    fleet.members[third].campaigns = false;
    fleet.give(third, Input::Stop);
    fleet.members[third].alive = false;
    fleet.pass(30);
    assert_eq!(fleet.led_by(0, 100) + fleet.led_by(1, 100), 100);
    assert!(kept_a.iter().all(|lock| fleet.locks_of(0, 100).contains(lock)));
    assert!(kept_b.iter().all(|lock| fleet.locks_of(1, 100).contains(lock)));
}

#[test]
fn a_member_that_joins_has_its_share_within_three_leases() {
    for (after, listings) in (1..=31).flat_map(|after| [(after, false), (after, true)]) {
        let mut fleet = Fleet::default();
        let rules = if listings { listing } else { balanced };
        fleet.join(rules("a"), 100);
        fleet.pass(after);
        fleet.join(rules("b"), 100);
        fleet.pass(45);
        let share = fleet.led_by(1, 100);
        assert!((35..=65).contains(&share), "{share} locks, 45 s after a join at {after} s, listings: {listings}");
    }
}

#[test]
fn two_members_that_join_within_a_lease_both_have_their_shares() {
    let mut fleet = Fleet::default();
    fleet.join(listing("a"), 100);
    fleet.pass(1);
    fleet.join(listing("b"), 100);
    fleet.pass(10);
    fleet.join(listing("c"), 100);
    fleet.pass(45);
    let shares = [0, 1, 2].map(|member| fleet.led_by(member, 100));
    assert!(shares.iter().all(|share| (20..=47).contains(share)), "{shares:?}");
}

#[test]
fn a_plain_lease_is_refused_and_left_alone() {
    let mut fleet = Fleet::default();
    let plain = LeaderElectionRecord::new("somebody", Duration::from_secs(15));
    fleet.locks.insert(LockId(0), VersionedRecord::new(plain, Version::new("1")));
    fleet.join(rules("a"), 2);
    fleet.pass(300);
    assert_eq!(fleet.led_by(0, 2), 1);
    assert_eq!(fleet.locks[&LockId(0)].version, Version::new("1"));
    let refusal = Refusal::PlainLease { holder: "somebody".to_owned() };
    let told = fleet.members[0].facts.iter().filter(|fact| matches!(fact, Fact::Refused { .. })).collect::<Vec<_>>();
    assert_eq!(told, [&Fact::Refused { lock: LockId(0), refusal }]);
}

#[test]
fn a_second_process_with_one_identity_is_told_and_writes_nothing() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 2);
    fleet.pass(1);
    let before = fleet.locks.clone();
    let second = fleet.join(rules("a"), 2);
    fleet.pass(120);
    assert!(fleet.members[second].facts.iter().any(|fact| matches!(fact, Fact::DuplicateIdentity { .. })));
    assert_eq!((fleet.sessions.len(), fleet.led_by(second, 2)), (1, 0));
    assert_eq!(fleet.locks, before);
    // A process that was restarted under its identity waits for the end of its earlier session.
    fleet.members[0].alive = false;
    fleet.pass(25);
    assert_eq!(fleet.led_by(second, 2), 2);
}

#[test]
fn one_lock_is_released_without_the_others() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 20);
    fleet.pass(1);
    fleet.join(rules("b"), 20);
    fleet.pass(5);
    fleet.give(0, Input::Command { lock: LockId(7), command: Command::TransferTo("b".to_owned()) });
    assert_eq!(fleet.led_by(0, 20), 19);
    let stopped = |effect: &Effect| matches!(effect, Effect::Lock { lock: LockId(7), effect: election::Effect::Stop { reason: TermEndReason::Transferred { to }, .. } } if to == "b");
    assert!(fleet.members[0].effects.iter().any(stopped));
    assert!(fleet.locks[&LockId(7)].record.is_released());
    // The session's next renewal counts the release, and the other process polls again.
    fleet.pass(8);
    assert_eq!((fleet.led_by(0, 20), fleet.led_by(1, 20)), (19, 1));
    assert_eq!(fleet.members[1].member.leading(fleet.now, LockId(7)).unwrap().fencing_token, 2);
}

#[test]
fn a_session_that_is_deleted_by_an_operator_keeps_its_locks_for_a_lease() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 3);
    fleet.pass(1);
    fleet.join(rules("b"), 3);
    fleet.pass(5);
    // The owner cannot be reached, and leads until its deadline.
    fleet.members[0].alive = false;
    fleet.sessions.retain(|_, session| session.record.holder_identity == "b");
    fleet.pass(12);
    assert_eq!(fleet.led_by(1, 3), 0);
    fleet.pass(8);
    assert_eq!(fleet.led_by(1, 3), 3);
}

#[test]
fn a_new_candidacy_keeps_the_wait_for_a_lock_whose_object_vanished() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 1);
    fleet.pass(20);
    fleet.join(rules("b"), 1);
    fleet.pass(12);
    // The leader has just scanned, and the other member scans before the leader does so again.
    fleet.locks.clear();
    for second in 0..90 {
        fleet.give(1, Input::Command { lock: LockId(0), command: Command::Stop });
        fleet.pass(1);
        assert!(fleet.led_by(0, 1) + fleet.led_by(1, 1) <= 1, "two leaders after {second} s");
    }
    assert_eq!(fleet.led_by(0, 1) + fleet.led_by(1, 1), 1);
}

#[test]
fn a_removed_lock_leaves_its_number_to_another_and_nothing_else() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 2);
    fleet.pass(1);
    let campaigns = &mut fleet.members[0].campaigns;
    *campaigns = false;
    assert!(!fleet.members[0].member.remove_lock(LockId(0)), "it is led");
    fleet.give(0, Input::Command { lock: LockId(0), command: Command::Stop });
    assert!(fleet.locks[&LockId(0)].record.is_released());
    let member = &mut fleet.members[0].member;
    assert!(member.remove_lock(LockId(0)) && !member.remove_lock(LockId(0)));
    assert_eq!(member.add_lock("another"), LockId(0));
    assert_eq!(member.add_lock("one more"), LockId(2));
    // The number stands for another object from here on.
    fleet.locks.remove(&LockId(0));
    fleet.give(
        0,
        Input::Compete {
            lock: LockId(0),
            stand_back: Duration::ZERO,
            ends_with_work: false,
            job: None,
            one_attempt: false,
        },
    );
    fleet.pass(1);
    assert_eq!(fleet.members[0].member.leading(fleet.now, LockId(0)).unwrap().fencing_token, 1);
    assert_eq!(fleet.led_by(0, 3), 2);
}

#[test]
fn a_lock_read_while_its_work_ends_goes_to_the_same_member() {
    let (mut fleet, lock) = (Fleet::default(), LockId(0));
    let mut rules = rules("a");
    rules.scan_interval = Duration::from_secs(2);
    fleet.join(rules, 1);
    fleet.pass(1);
    (fleet.members[0].works_on, fleet.members[0].campaigns) = (true, false);
    fleet.give(0, Input::Command { lock, command: Command::TransferTo("b".to_owned()) });
    fleet.requests = Requests::default();
    fleet.pass(5);
    assert!(fleet.requests.reads > 0);
    fleet.give(0, Input::WorkEnded { lock, end: WorkEnd::Complete });
    assert!(fleet.locks[&lock].record.is_released());
    assert_eq!(fleet.locks[&lock].record.preferred_holder.as_deref(), Some("b"));
}

#[test]
fn a_session_is_ended_by_a_write_even_if_a_read_shows_no_object() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 1);
    fleet.pass(1);
    fleet.join(rules("b"), 1);
    fleet.pass(10);
    let id = fleet.session_of(0);
    // Every read and every listing of `b` lies for longer than a lease.
    fleet.hidden_from = Some((1, id.clone()));
    fleet.pass(60);
    assert_eq!((fleet.led_by(0, 1), fleet.led_by(1, 1)), (1, 0));
    // A session without an object cannot end otherwise.
    fleet.hidden_from = None;
    fleet.members[0].alive = false;
    fleet.sessions.remove(&id);
    fleet.pass(60);
    assert_eq!(fleet.led_by(1, 1), 1);
    assert!(fleet.sessions[&id].record.is_released());
}

#[test]
fn a_lock_that_a_late_write_takes_for_a_stopped_elector_is_released() {
    for (of_members, answer) in
        [(rules as fn(&str) -> SessionConfig, None), (listing, None), (rules, Some(StoreErrorKind::Conflict))]
    {
        let (mut fleet, lock) = (Fleet { held_back_as: answer, ..Fleet::default() }, LockId(0));
        fleet.holds_back = 1;
        fleet.join(of_members("a"), 1);
        fleet.members[0].campaigns = false;
        fleet.pass(1);
        fleet.give(0, Input::Command { lock, command: Command::Stop });
        // A read shows that the write is not committed so far.
        fleet.pass(5);
        assert_eq!(fleet.held_back.len(), 1);
        fleet.arrive_late();
        assert!(!fleet.locks[&lock].record.is_released());
        fleet.join(of_members("b"), 1);
        fleet.pass(60);
        assert_eq!(fleet.led_by(1, 1), 1);
    }
}

#[test]
fn a_lock_whose_earlier_work_runs_here_is_left_to_others() {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 1);
    fleet.pass(1);
    fleet.members[0].works_on = true;
    // The process stands still until its session is over, and its work goes on beside the next session.
    fleet.now = fleet.now + Duration::from_secs(20);
    fleet.pass(60);
    assert_eq!(fleet.led_by(0, 1), 0);
    fleet.join(rules("b"), 1);
    fleet.pass(60);
    assert_eq!(fleet.led_by(1, 1), 1);
    fleet.give(0, Input::WorkEnded { lock: LockId(0), end: WorkEnd::Complete });
}

#[test]
fn an_old_read_of_a_lock_that_was_released_begins_no_term() {
    let (mut fleet, lock) = (Fleet::default(), LockId(0));
    fleet.join(rules("a"), 1);
    fleet.members[0].campaigns = false;
    fleet.pass(1);
    fleet.give(0, Input::Command { lock, command: Command::StepDown });
    // The elector is stopped while it does not know whether its write has taken the lock, and releases the lock.
    let compete =
        || Input::Compete { lock, stand_back: Duration::ZERO, ends_with_work: false, job: None, one_attempt: false };
    fleet.loses = 2;
    fleet.give(0, compete());
    let taken = fleet.locks[&lock].clone();
    fleet.give(0, Input::Command { lock, command: Command::Stop });
    fleet.pass(15);
    assert!(fleet.locks[&lock].record.is_released());
    // The answer to the next write is lost, too, and the next read shows the lock as it was before its release.
    fleet.loses = 1;
    fleet.old_reads.insert(lock, taken);
    fleet.members[0].effects.clear();
    fleet.give(0, compete());
    fleet.pass(5);
    let terms = fleet.members[0].effects.iter().filter_map(|effect| match effect {
        Effect::Lock { effect: election::Effect::Start { term, .. }, .. } => Some(term.fencing_token),
        _ => None,
    });
    assert_eq!(terms.collect::<Vec<_>>(), vec![3]);
}
