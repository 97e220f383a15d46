//! Listings of locks, page by page.

use std::collections::BTreeSet;
use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::election::{self, Answer, Request};
use leaderelection::implement::{PageToken, Version, VersionedRecord};
use leaderelection::sessions::Progress;
use leaderelection::sessions::machine::{Effect, Input};

use super::fleet::{Fleet, rules};
use super::listing as lists;

const LOCKS: u32 = 100;

/// Returns a fleet whose only member has ended and left its locks, with a store that lists them in pages of ten.
fn orphaned() -> Fleet {
    let mut fleet = Fleet { page_size: 10, ..Fleet::default() };
    fleet.join(rules("a"), LOCKS);
    fleet.pass(1);
    fleet.members[0].campaigns = false;
    fleet.give(0, Input::Stop);
    fleet.members[0].alive = false;
    fleet.pages.clear();
    fleet
}

#[test]
fn pages_are_used_as_they_come_and_a_failed_one_is_retried() {
    let mut fleet = orphaned();
    fleet.loses_pages = 1;
    let member = fleet.join(rules("b"), LOCKS);
    fleet.pass(3);
    assert_eq!(fleet.led_by(member, LOCKS), LOCKS as usize);
    let places: Vec<_> = fleet.pages.iter().map(|from| from.as_ref().map(|token| token.as_str().to_owned())).collect();
    assert_eq!(places[..4], [None, Some("10".into()), Some("10".into()), Some("20".into())]);
    // Locks of the first page were read before the second page was asked for.
    let effects = &fleet.members[member].effects;
    let reads = effects.iter().position(|effect| matches!(effect, Effect::Lock { .. }));
    let pages = effects.iter().rposition(|effect| matches!(effect, Effect::ListLocks { .. }));
    assert!(reads < pages, "{reads:?}, {pages:?}");
}

#[test]
fn a_member_that_gets_no_listing_reads_its_locks_in_turn() {
    for locks in [0, LOCKS] {
        let mut fleet = if locks == 0 { Fleet::default() } else { orphaned() };
        fleet.loses_pages = usize::MAX;
        let member = fleet.join(rules("b"), LOCKS);
        fleet.pass(5);
        assert_eq!(fleet.led_by(member, LOCKS), LOCKS as usize, "{locks} locks existed");
        // The listing is tried again with the next poll of all locks, and never in between.
        let asked = fleet.pages.len();
        fleet.pass(20);
        assert_eq!(fleet.pages.len(), asked);
    }
}

#[test]
fn a_read_that_is_wanted_once_more_keeps_its_turn() {
    let mut fleet = Fleet { is_silent: true, loses_pages: usize::MAX, ..Fleet::default() };
    let member = fleet.join(rules("b"), LOCKS);
    let lease = LeaderElectionRecord::new("a", Duration::from_secs(15));
    let held = VersionedRecord::new(lease, Version::new("1"));
    let (mut seen, mut read) = (0, BTreeSet::new());
    for _ in 0..3 {
        // Each poll of all locks wants each of them read, and the store answers less than half of the reads until the next.
        fleet.pass(31);
        for _ in 0..40 {
            let asked =
                fleet.members[member].effects.iter().enumerate().skip(seen).find_map(|(index, effect)| match effect {
                    Effect::Lock { lock, effect: election::Effect::Send(Request::Read) } => Some((index + 1, *lock)),
                    _ => None,
                });
            let Some((next, lock)) = asked else { break };
            seen = next;
            read.insert(lock);
            fleet.give(member, Input::Lock { lock, answer: Answer::Read(Ok(Some(held.clone()))) });
        }
    }
    assert_eq!(read.len(), LOCKS as usize);
}

#[test]
fn a_member_tells_of_its_long_work_while_requests_wait_for_others() {
    let told = |is_silent| {
        let mut fleet = Fleet { is_silent, ..Fleet::default() };
        fleet.join(rules("a"), 1_000);
        fleet.pass(9);
        fleet.sessions.values().find_map(|session| Progress::of(&session.record))
    };
    assert_eq!(told(false), None);
    let Some(Progress { leads, taking, handing_over, waiting, seconds, .. }) = told(true) else {
        panic!("no progress reported")
    };
    assert_eq!((leads, handing_over, taking + waiting), (0, 0, 1_000));
    assert!((16..=128).contains(&taking), "{taking}");
    assert!((4..=8).contains(&seconds), "{seconds}");
}

#[test]
fn a_lock_counts_as_missing_only_after_the_last_page() {
    let mut fleet = orphaned();
    let member = fleet.join(rules("b"), LOCKS + 5);
    fleet.pass(3);
    assert_eq!(fleet.led_by(member, LOCKS + 5), LOCKS as usize + 5);
    let effects = &fleet.members[member].effects;
    let is_last_page =
        |effect: &Effect| matches!(effect, Effect::ListLocks { from: Some(from) } if *from == PageToken::new("90"));
    let creates = |effect: &Effect| matches!(effect, Effect::Lock { effect: election::Effect::Send(Request::Write(write)), .. } if write.expected.is_none());
    let (last_page, created) = (effects.iter().position(is_last_page), effects.iter().position(creates));
    assert!(last_page.is_some() && last_page < created, "{last_page:?}, {created:?}");
}

#[test]
fn a_member_with_a_short_lease_polls_often_during_a_handoff() {
    let (short, long) = (15, 60);
    let mut with_long_lease = lists("long");
    with_long_lease.election = election::ElectionConfig::new(
        "long",
        Duration::from_secs(long),
        Duration::from_secs(40),
        Duration::from_secs(2),
    );
    let mut fleet = Fleet::default();
    fleet.join(with_long_lease, LOCKS);
    let member = fleet.join(lists("short"), LOCKS);
    fleet.pass(5 * long);
    let reads = |fleet: &Fleet| {
        fleet.members[member].effects.iter().filter(|effect| matches!(effect, Effect::ListLocks { .. })).count()
    };
    fleet.join(lists("new"), LOCKS);
    // By its own lease, the member with the short one would have gone back to rare reads.
    fleet.pass(4 * short);
    let before = reads(&fleet);
    fleet.pass(2 * short);
    let often = reads(&fleet) - before;
    assert!((12..=16).contains(&often), "{often} reads in 15 retry periods");
    fleet.pass(3 * long);
    let before = reads(&fleet);
    fleet.pass(2 * short);
    let rarely = reads(&fleet) - before;
    assert!(rarely <= 2, "{rarely} reads in 15 retry periods, long after the last join");
}
