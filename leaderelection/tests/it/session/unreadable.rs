//! Sessions whose objects no read shows, and what others say about sessions.

use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::StoreErrorKind::{Ambiguous, Fatal, Rejected, Unreadable};
use leaderelection::election::{self, PeerMessage};
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::sessions::machine::{Effect, Fact, Input, LockId, PeerRequest, Refusal, SessionConfig, SessionId};

use super::fleet::{Fleet, Requests, rules};

const LOCKS: u32 = 10;

/// Returns the rules of a member that lists the sessions.
fn listing(identity: &str) -> SessionConfig {
    let mut rules = rules(identity);
    rules.reads_per_listing = 0;
    rules
}

/// A member that leads the first lock, and its session.
fn owner(fleet: &mut Fleet, identity: &str) -> SessionId {
    let owner = fleet.join(rules(identity), 1);
    fleet.pass(1);
    assert_eq!(fleet.led_by(owner, 1), 1);
    fleet.session_of(owner)
}

#[test]
fn an_unreadable_session_blocks_its_own_locks_and_nothing_else() {
    for (kind, of_members) in
        [Fatal, Ambiguous, Rejected].into_iter().flat_map(|kind| [(kind, rules as fn(_) -> _), (kind, listing)])
    {
        // The owner lives, or is dead and had the identity of the member that is started.
        for (identity, lives) in [("owner", true), ("b", false)] {
            let mut fleet = Fleet::default();
            let session = owner(&mut fleet, identity);
            fleet.members[0].alive = lives;
            fleet.blocked.insert(session.clone(), kind);
            let other = fleet.join(of_members("b"), LOCKS);
            fleet.pass(if kind == Fatal { 5 } else { 25 });
            assert_eq!(fleet.led_by(other, LOCKS), LOCKS as usize - 1, "{kind:?}, {identity}");
            fleet.requests = Requests::default();
            fleet.pass(600);
            assert_eq!(fleet.led_by(other, LOCKS), LOCKS as usize - 1, "{kind:?}, {identity}");
            assert!(!fleet.sessions[&session].record.is_released());
            // An operator lets it be read, or removes the object of a process that is dead.
            fleet.members[0].alive = false;
            if lives {
                fleet.blocked.clear();
            } else {
                fleet.sessions.remove(&session);
                fleet.blocked.clear();
            }
            fleet.pass(60);
            assert_eq!(fleet.led_by(other, LOCKS), LOCKS as usize, "{kind:?}, {identity}");
        }
    }
}

#[test]
fn an_unreadable_session_of_this_identity_is_waited_for() {
    let mut fleet = Fleet::default();
    let session = owner(&mut fleet, "a");
    let second = fleet.join(rules("a"), LOCKS);
    fleet.pass(5);
    fleet.blocked.insert(session, Fatal);
    fleet.members[0].alive = false;
    fleet.pass(8);
    assert_eq!(fleet.led_by(second, LOCKS), 0);
    fleet.pass(20);
    assert_eq!(fleet.led_by(second, LOCKS), LOCKS as usize - 1);
}

#[test]
fn an_object_that_is_no_session_costs_nothing_in_the_end() {
    for (of_members, lists_names_alone) in
        [(rules as fn(&str) -> SessionConfig, false), (listing, false), (rules, true)]
    {
        let of_an_hour = [false, true].map(|has_junk| {
            let mut fleet = Fleet { lists_names_alone, ..Fleet::default() };
            if has_junk {
                let junk = LeaderElectionRecord::new("junk", Duration::from_secs(15));
                fleet.sessions.insert("junk".into(), VersionedRecord::new(junk, Version::new("1")));
                fleet.blocked.insert("junk".into(), Unreadable);
            }
            for member in ["a", "b"] {
                fleet.join(of_members(member), 100);
            }
            fleet.pass(60);
            fleet.requests = Requests::default();
            fleet.pass(3_600);
            fleet.requests
        });
        assert_eq!(of_an_hour[0], of_an_hour[1]);
    }
}

#[test]
fn the_locks_of_an_unreadable_session_are_taken_after_a_lease() {
    for of_members in [rules as fn(&str) -> SessionConfig, listing] {
        let mut fleet = Fleet::default();
        let session = owner(&mut fleet, "a");
        fleet.members[0].alive = false;
        fleet.blocked.insert(session, Unreadable);
        let other = fleet.join(of_members("b"), 1);
        fleet.pass(14);
        assert_eq!(fleet.led_by(other, 1), 0);
        fleet.pass(10);
        assert_eq!(fleet.led_by(other, 1), 1);
    }
}

#[test]
fn a_late_answer_does_not_show_that_an_object_stayed_unreadable() {
    let seconds = Duration::from_secs;
    let mut fleet = Fleet::default();
    let session = owner(&mut fleet, "a");
    let other = fleet.join(rules("b"), 1);
    fleet.pass_exactly(seconds(10));
    fleet.blocked.insert(session, Unreadable);
    fleet.pass_exactly(seconds(2));
    // The second of two reads that show it is in flight while the object is put right. Longer than a lease, and over
    // before the next listing.
    fleet.peer_answers_take = seconds(16);
    fleet.pass_exactly(seconds(3));
    fleet.blocked.clear();
    fleet.pass_exactly(seconds(30));
    assert_eq!((fleet.led_by(0, 1), fleet.led_by(other, 1)), (1, 0));
}

#[test]
fn a_session_whose_object_was_taken_for_junk_is_read_again() {
    for lists_names_alone in [false, true] {
        let mut fleet = Fleet { lists_names_alone, ..Fleet::default() };
        let session = owner(&mut fleet, "a");
        fleet.blocked.insert(session, Unreadable);
        let other = fleet.join(rules("b"), 0);
        fleet.pass(120);
        fleet.blocked.clear();
        let lock = fleet.members[other].member.add_lock("shard-0");
        fleet.give(
            other,
            Input::Compete { lock, stand_back: Duration::ZERO, ends_with_work: false, job: None, one_attempt: false },
        );
        fleet.pass(120);
        assert_eq!((fleet.led_by(0, 1), fleet.led_by(other, 1)), (1, 0));
    }
}

#[test]
fn one_read_of_a_missing_session_that_shows_no_record_ends_nothing() {
    for tenths in 130..190 {
        let mut fleet = Fleet::default();
        let session = owner(&mut fleet, "a");
        let other = fleet.join(rules("b"), 1);
        fleet.pass(10);
        fleet.hidden_from = Some((other, session.clone()));
        fleet.pass_exactly(Duration::from_millis(100 * tenths));
        // Somebody says that the session lives, so it is read once more before it is ended.
        fleet.blocked.insert(session.clone(), Unreadable);
        tell(&mut fleet, &session, "invented".to_owned(), 1);
        fleet.pass(5);
        assert_eq!((fleet.led_by(0, 1), fleet.led_by(other, 1)), (1, 0), "after {tenths} tenths of a second");
    }
}

#[test]
fn a_lease_that_a_lock_tells_of_a_session_that_was_read_decides_nothing() {
    let [lease, deadline, retry] = [60, 40, 2].map(Duration::from_secs);
    let mut fleet = Fleet::default();
    let slow = fleet.join(SessionConfig::new(election::ElectionConfig::new("a", lease, deadline, retry)), 1);
    fleet.pass(1);
    let session = fleet.session_of(slow);
    let other = fleet.join(rules("b"), 1);
    fleet.pass(10);
    // The first message comes while the session can be read, and the second one when its object is missing.
    for is_missing in [false, true] {
        fleet.hidden_from = is_missing.then(|| (other, session.clone()));
        let lock = fleet.locks.get_mut(&LockId(0)).unwrap();
        lock.record.unknown.set("sessionLeaseMillis", &1);
        lock.version = Version::new(format!("by hand, {is_missing}"));
        fleet.pass(50);
        let ends = |effect: &Effect| matches!(effect, Effect::Peer { request: PeerRequest::End(_), .. });
        assert!(!fleet.members[other].effects.iter().any(ends), "missing: {is_missing}");
        assert_eq!((fleet.led_by(slow, 1), fleet.led_by(other, 1)), (1, 0));
    }
}

#[test]
fn a_dead_session_missing_from_reads_is_ended_within_one_lease() {
    let mut fleet = Fleet { peer_answers_take: Duration::from_millis(300), ..Fleet::default() };
    let session = owner(&mut fleet, "a");
    fleet.members[0].alive = false;
    let other = fleet.join(rules("b"), 1);
    // Its object is there all the time, so the write that is to create an ended one is refused.
    fleet.hidden_from = Some((other, session.clone()));
    let ends = |effect: &Effect| matches!(effect, Effect::Peer { request: PeerRequest::End(_), .. });
    while !fleet.members[other].effects.iter().any(ends) {
        fleet.pass_exactly(Duration::from_millis(100));
    }
    fleet.hidden_from = None;
    // A listing has shown its version more than a lease ago.
    fleet.pass_exactly(Duration::from_secs(5));
    assert!(fleet.sessions[&session].record.is_released());
    assert_eq!(fleet.led_by(other, 1), 1);
}

/// Two members, of which the second got messages from the first until now.
fn reported_so_far(of_members: fn(&str) -> SessionConfig) -> (Fleet, SessionId, u64) {
    let mut fleet = Fleet::default();
    for (member, locks) in [("a", 1), ("b", 1)] {
        fleet.join(of_members(member), locks);
        fleet.pass(10);
    }
    let session = fleet.session_of(0);
    fleet.pass(30);
    for number in 1..=20 {
        fleet.pass(1);
        tell_of_last(&mut fleet, &session, number);
    }
    assert_eq!((fleet.led_by(0, 1), fleet.members[1].member.connected_sessions()), (1, 1));
    (fleet, session, 21)
}

fn tell(fleet: &mut Fleet, session: &SessionId, write_id: String, number: u64) {
    let message = PeerMessage::Committed { holder: "a".to_owned(), fencing_token: 0.into(), write_id, number };
    fleet.give(1, Input::Message { session: session.clone(), message });
}

fn tell_of_last(fleet: &mut Fleet, session: &SessionId, number: u64) {
    let last = fleet.sessions[session].record.write_id.clone().unwrap();
    tell(fleet, session, last, number);
}

#[test]
fn a_silent_session_is_ended_as_soon_as_one_without_messages() {
    for seconds in 30..60 {
        let (mut fleet, ..) = reported_so_far(listing);
        fleet.pass(seconds);
        fleet.members[0].alive = false;
        // A lease, and the pauses of two listings.
        fleet.pass(15 + 8);
        assert_eq!(fleet.led_by(1, 1), 1, "dead after {seconds} s");
    }
}

#[test]
fn a_session_is_read_before_its_end_despite_an_old_message() {
    let (mut fleet, session, number) = reported_so_far(rules);
    fleet.members[0].alive = false;
    let renewed_at = fleet.renewed_at[&session];
    fleet.pass_exactly((renewed_at + Duration::from_millis(14_500)).saturating_since(fleet.now));
    tell(&mut fleet, &session, "unread".to_owned(), number);
    tell_of_last(&mut fleet, &session, number + 1);
    fleet.members[1].effects.clear();
    fleet.pass(5);
    let requests = fleet.members[1].effects.iter().filter_map(|effect| match effect {
        Effect::Peer { request, .. } => Some(request),
        _ => None,
    });
    let requests: Vec<_> = requests.collect();
    assert!(matches!(requests[..], [PeerRequest::Read, PeerRequest::End(_)]), "{requests:?}");
}

#[test]
fn a_plain_lease_is_told_after_a_record_of_another_service() {
    let mut fleet = Fleet::default();
    let plain = |name: &str| LeaderElectionRecord::new(name, Duration::from_secs(15));
    let json = plain("somebody").to_json();
    let of_another = std::str::from_utf8(&json).unwrap().replacen('{', "{\"purpose\":\"web\",", 1);
    let incompatible = LeaderElectionRecord::from_json(of_another.as_bytes(), Duration::from_secs(60)).unwrap();
    fleet.locks.insert(LockId(0), VersionedRecord::new(incompatible, Version::new("1")));
    let mut rules = rules("a");
    rules.election.service = Some("mail".to_owned());
    fleet.join(rules, 1);
    fleet.pass(60);
    fleet.locks.insert(LockId(0), VersionedRecord::new(plain("else"), Version::new("2")));
    fleet.pass(60);
    let told = fleet.members[0].facts.iter().filter_map(|fact| match fact {
        Fact::Refused { refusal, .. } => Some(refusal),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert!(
        matches!(told[..], [Refusal::IncompatibleRecord(_), Refusal::PlainLease { holder }] if holder == "else"),
        "{told:?}"
    );
}
