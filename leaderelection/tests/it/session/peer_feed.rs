//! Members that send each other messages, and lies.

use std::ops::Range;
use std::time::Duration;

use leaderelection::election::{self, Command, PeerMessage, WorkEnd};
use leaderelection::sessions::machine::{Effect, Fact, Input, LockId, SessionId};

use super::balanced;
use super::fleet::{Fleet, Requests, rules};

const LOCKS: u32 = 20;

/// Two members, of which the first leads all locks and the second knows it.
fn two() -> (Fleet, SessionId) {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), LOCKS);
    fleet.pass(1);
    fleet.join(rules("b"), LOCKS);
    fleet.pass(40);
    assert_eq!(fleet.led_by(0, LOCKS), LOCKS as usize);
    let session = fleet.session_of(0);
    (fleet, session)
}

fn committed(write_id: String, number: u64) -> PeerMessage {
    PeerMessage::Committed { holder: "a".to_owned(), fencing_token: 0.into(), write_id, number }
}

/// Lets a second pass, after which the second member learns of the last renewal of the first.
fn renew_and_tell(fleet: &mut Fleet, session: &SessionId, number: u64) {
    fleet.pass(1);
    let write_id = fleet.sessions[session].record.write_id.clone().unwrap();
    fleet.give(1, Input::Message { session: session.clone(), message: committed(write_id, number) });
}

#[test]
fn a_session_that_sends_messages_is_not_read() {
    let (mut fleet, session) = two();
    (1..=10).for_each(|number| renew_and_tell(&mut fleet, &session, number));
    fleet.requests = Requests::default();
    (11..=300).for_each(|number| renew_and_tell(&mut fleet, &session, number));
    // The first member gets no messages, and so reads the session of the second.
    let of_first = 290 / 2 + 290 / 32 + 2;
    let Requests { reads, listings, .. } = fleet.requests;
    assert!(reads <= of_first + 2, "{reads} reads");
    assert!(listings <= 2 * 2 * 11, "{listings} listings");
    // Silence is noticed, and the lease counts from the last renewal.
    fleet.members[0].alive = false;
    fleet.pass(18);
    assert_eq!(fleet.led_by(1, LOCKS), LOCKS as usize);
}

#[test]
fn late_messages_of_a_session_count_again_after_its_next_write() {
    let (mut fleet, session) = two();
    let mut last = fleet.sessions[&session].record.write_id.clone().unwrap();
    // One poll in sixteen shows what the last has shown, although it comes after a message.
    for number in 1..=40 {
        fleet.pass_exactly(Duration::from_secs(2));
        let newest = fleet.sessions[&session].record.write_id.clone().unwrap();
        let message = committed(std::mem::replace(&mut last, newest), number);
        fleet.give(1, Input::Message { session: session.clone(), message });
    }
    (41..=50).for_each(|number| renew_and_tell(&mut fleet, &session, number));
    assert_eq!(fleet.members[1].member.connected_sessions(), 1);
}

#[test]
fn a_dead_session_ends_whatever_is_said_of_it() {
    let lies: [fn(u64, &str) -> PeerMessage; 3] = [
        |number, _| committed(format!("invented-{number}"), 1_000 + number),
        |number, last| committed(last.to_owned(), 1_000 + number),
        |number, last| match number % 2 {
            0 => committed(last.to_owned(), 1_000 + number),
            _ => committed(format!("invented-{number}"), 1_000 + number),
        },
    ];
    for lie in lies {
        let (mut fleet, session) = two();
        (1..=10).for_each(|number| renew_and_tell(&mut fleet, &session, number));
        fleet.members[0].alive = false;
        let last = fleet.sessions[&session].record.write_id.clone().unwrap();
        let died_at = fleet.now;
        for number in 0..120 {
            fleet.pass(1);
            fleet.give(1, Input::Message { session: session.clone(), message: lie(number, &last) });
            if fleet.led_by(1, LOCKS) == LOCKS as usize {
                break;
            }
            assert_eq!(fleet.led_by(1, LOCKS), 0);
        }
        let took = fleet.now.saturating_since(died_at);
        // Two pauses between polls, and a lease.
        assert!(took >= Duration::from_secs(12) && took <= Duration::from_secs(30 * 2 + 15 + 1), "{took:?}");
    }
}

#[test]
fn a_lock_that_is_given_up_goes_to_the_next_in_order_at_once() {
    let (mut fleet, session) = two();
    fleet.members[0].campaigns = false;
    for lock in 0..LOCKS {
        // A read shows each second release, because its answer is lost.
        fleet.loses = lock as usize % 2;
        fleet.give(0, Input::Command { lock: LockId(lock), command: Command::Stop });
        let count = u64::from(lock) + 1;
        let hash = fleet.members[0].facts.iter().find_map(|fact| match fact {
            Fact::LockReleased { count: of, lock } if *of == count => Some(*lock),
            _ => None,
        });
        let message = PeerMessage::Released { count, locks: vec![hash.unwrap()] };
        fleet.give(1, Input::Message { session: session.clone(), message });
        assert_eq!(fleet.led_by(1, LOCKS), count as usize, "without any time");
    }
}

/// The messages that one of three members says about the release of its only lock. The last member has its turn after the second.
fn released_among_three() -> (Fleet, impl Fn(&mut Fleet, usize, u64)) {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), 1);
    fleet.pass(1);
    for member in ["e", "b"] {
        fleet.join(rules(member), 1);
    }
    fleet.pass(40);
    let session = fleet.session_of(0);
    fleet.members[0].campaigns = false;
    fleet.give(0, Input::Command { lock: LockId(0), command: Command::Stop });
    let hash = fleet.members[0].facts.iter().find_map(|fact| match fact {
        Fact::LockReleased { lock, .. } => Some(*lock),
        _ => None,
    });
    let locks = vec![hash.unwrap()];
    let tell = move |fleet: &mut Fleet, index: usize, count: u64| {
        let message = PeerMessage::Released { count, locks: locks.clone() };
        fleet.give(index, Input::Message { session: session.clone(), message });
    };
    (fleet, tell)
}

/// The reads of locks that a member has sent.
fn reads(fleet: &Fleet, index: usize) -> usize {
    let is_read = |effect: &&Effect| {
        matches!(effect, Effect::Lock { effect: election::Effect::Send(election::Request::Read), .. })
    };
    fleet.members[index].effects.iter().filter(is_read).count()
}

#[test]
fn a_lock_that_is_given_up_is_read_by_its_next_leader_first() {
    let (mut fleet, tell) = released_among_three();
    let before = reads(&fleet, 2);
    tell(&mut fleet, 2, 1);
    assert_eq!(reads(&fleet, 2), before, "others go first");
    tell(&mut fleet, 1, 1);
    assert_eq!(fleet.led_by(1, 1), 1, "without any time");
    fleet.pass(3);
    assert_eq!(reads(&fleet, 2), before + 1, "one read shows the leader");
}

#[test]
fn no_words_put_off_the_read_of_a_lock_that_is_given_up() {
    let (mut fleet, tell) = released_among_three();
    fleet.members[1].alive = false;
    let told_at = fleet.now;
    for count in 1.. {
        tell(&mut fleet, 2, count);
        fleet.pass_exactly(Duration::from_millis(100));
        if fleet.led_by(2, 1) == 1 {
            break;
        }
    }
    let took = fleet.now.saturating_since(told_at);
    assert!(
        (Duration::from_secs(2)..Duration::from_millis(2_200)).contains(&took),
        "a retry period for one rank: {took:?}"
    );
}

#[test]
fn a_false_word_about_an_end_or_a_release_costs_a_read() {
    let (mut fleet, session) = two();
    let last = fleet.locks.clone();
    for message in [
        PeerMessage::Ended { holder: "a".to_owned(), fencing_token: 0.into() },
        PeerMessage::Released { count: 5, locks: Vec::new() },
        PeerMessage::Released { count: u64::MAX, locks: vec![7; 64] },
    ] {
        fleet.requests = Requests::default();
        fleet.give(1, Input::Message { session: session.clone(), message });
        let Requests { reads, listings, session_writes, lock_writes } = fleet.requests;
        assert!(reads + listings <= 1 && session_writes + lock_writes == 0, "{:?}", fleet.requests);
    }
    fleet.pass(60);
    assert_eq!((fleet.led_by(0, LOCKS), fleet.locks), (LOCKS as usize, last));
}

/// Lets the first member give up some of its locks. Returns the hashes of their names.
fn give_up(fleet: &mut Fleet, locks: Range<u32>) -> Vec<u64> {
    fleet.members[0].campaigns = false;
    let before = fleet.members[0].facts.len();
    locks.for_each(|lock| fleet.give(0, Input::Command { lock: LockId(lock), command: Command::Stop }));
    let let_go = |fact: &Fact| if let Fact::LockReleased { lock, .. } = fact { Some(*lock) } else { None };
    fleet.members[0].facts[before..].iter().filter_map(let_go).collect()
}

#[test]
fn false_words_about_releases_cost_one_listing_per_retry_period() {
    let names = give_up(&mut two().0, 0..LOCKS);
    assert_eq!(names.len(), LOCKS as usize);
    for (releases, locks) in [(1, &[][..]), (1, &names[..1]), (20, &names[..]), (1 << 50, &names[..])] {
        let (mut fleet, session) = two();
        // A page that is in flight when more messages come.
        fleet.pages_take = Duration::from_millis(50);
        fleet.requests = Requests::default();
        for number in 1..=1_000 {
            let message = PeerMessage::Released { count: number * releases, locks: locks.to_vec() };
            fleet.give(1, Input::Message { session: session.clone(), message });
            fleet.pass_exactly(Duration::from_millis(10));
        }
        let Requests { reads, listings, session_writes, lock_writes } = fleet.requests;
        // Two members read and renew each other's session five times in these ten seconds, and scan.
        assert!(listings <= 6 + 2, "{listings} listings, {releases} releases per message, {} names", locks.len());
        assert!(
            reads <= 6 * LOCKS as usize + 12,
            "{reads} reads, {releases} releases per message, {} names",
            locks.len()
        );
        assert_eq!((session_writes <= 12, lock_writes), (true, 0));
    }
}

#[test]
fn an_unnamed_release_is_found_within_a_retry_period() {
    for pages_take in [0, 300].map(Duration::from_millis) {
        let (mut fleet, session) = two();
        // Nothing else shows the releases: the session sends messages, and so is not read.
        (1..=10).for_each(|number| renew_and_tell(&mut fleet, &session, number));
        fleet.pages_take = pages_take;
        for count in 1..=2 {
            give_up(&mut fleet, count - 1..count);
            let message = PeerMessage::Released { count: count.into(), locks: Vec::new() };
            fleet.give(1, Input::Message { session: session.clone(), message });
            fleet.pass_exactly(Duration::from_millis(100));
        }
        fleet.pass_exactly(Duration::from_millis(2_300));
        assert_eq!(fleet.led_by(1, LOCKS), 2, "{pages_take:?} for a page");
    }
}

#[test]
fn a_member_that_stops_gives_up_a_few_locks_at_a_time() {
    let stopped = |fleet: &Fleet| {
        let is_stop = |effect: &&Effect| matches!(effect, Effect::Lock { effect: election::Effect::Stop { .. }, .. });
        fleet.members[0].effects.iter().filter(is_stop).count()
    };
    for (max_in_flight, few, is_work_quick) in [(None, 4, true), (None, 4, false), (Some(2), 1, true)] {
        let (mut fleet, mut rules) = (Fleet::default(), balanced("a"));
        rules.max_in_flight = max_in_flight;
        fleet.join(rules, LOCKS);
        fleet.pass(1);
        fleet.join(balanced("b"), LOCKS);
        fleet.pass(40);
        for number in 1..=10 {
            fleet.pass(1);
            let session = fleet.session_of(1);
            let write_id = fleet.sessions[&session].record.write_id.clone().unwrap();
            let message = PeerMessage::Committed { holder: "b".to_owned(), fencing_token: 0.into(), write_id, number };
            fleet.give(0, Input::Message { session, message });
        }
        (fleet.members[0].works_on, fleet.members[0].campaigns) = (true, false);
        let (session, share) = (fleet.session_of(0), fleet.locks_of(0, LOCKS));
        assert!(share.len() > 5, "{share:?}");
        let before = stopped(&fleet);
        fleet.give(0, Input::Stop);
        assert_eq!(stopped(&fleet) - before, few, "a quarter of 16, and one at least");
        if is_work_quick {
            for (ended, lock) in share.iter().enumerate() {
                assert!(!fleet.sessions[&session].record.is_released(), "before {ended} locks are given up");
                fleet.give(0, Input::WorkEnded { lock: LockId(*lock), end: WorkEnd::Complete });
                assert_eq!(stopped(&fleet) - before, (ended + 1 + few).min(share.len()));
            }
            assert!(fleet.sessions[&session].record.is_released());
        } else {
            // These rules are as patient with a release as a lease lasts.
            fleet.pass(14);
            assert_eq!(stopped(&fleet) - before, few);
            fleet.pass(2);
            assert_eq!(stopped(&fleet) - before, share.len());
        }
    }
}

#[test]
fn repeated_words_about_an_end_cost_one_read() {
    let (mut fleet, session) = two();
    (1..=10).for_each(|number| renew_and_tell(&mut fleet, &session, number));
    fleet.requests = Requests::default();
    for _ in 0..100 {
        fleet.pass_exactly(Duration::from_millis(10));
        let message = PeerMessage::Ended { holder: "a".to_owned(), fencing_token: 0.into() };
        fleet.give(1, Input::Message { session: session.clone(), message });
    }
    // The other reads are those of both members in any case.
    assert!(fleet.requests.reads <= 6, "{:?}", fleet.requests);
}

#[test]
fn a_lock_that_is_given_up_during_a_read_is_read_again() {
    let (mut fleet, session) = two();
    // Nothing else shows the releases: the session sends messages, and so is not read.
    (1..=10).for_each(|number| renew_and_tell(&mut fleet, &session, number));
    let old = fleet.locks[&LockId(0)].clone();
    let locks = give_up(&mut fleet, 0..1);
    fleet.is_silent = true;
    for count in 1..=2 {
        let message = PeerMessage::Released { count, locks: locks.clone() };
        fleet.give(1, Input::Message { session: session.clone(), message });
        fleet.pass_exactly(Duration::from_millis(100));
    }
    let is_read = |effect: &&Effect| {
        matches!(effect, Effect::Lock { lock: LockId(0), effect: election::Effect::Send(election::Request::Read) })
    };
    let reads = |fleet: &Fleet| fleet.members[1].effects.iter().filter(is_read).count();
    let before = reads(&fleet);
    // The answer to the first read is older than the second message.
    let answer = election::Answer::Read(Ok(Some(old)));
    fleet.give(1, Input::Lock { lock: LockId(0), answer });
    fleet.pass_exactly(Duration::from_millis(2_300));
    assert_eq!(reads(&fleet) - before, 1);
}
