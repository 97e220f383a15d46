//! What is left of sessions that are over.

use std::time::Duration;

use leaderelection::StoreErrorKind::{Fatal, Unreadable};
use leaderelection::sessions::machine::{Effect, PeerRequest, SessionConfig, SessionId};

use super::fleet::{Fleet, rules};
use super::listing;

/// A member that has ended the session of another one and leads its lock, and that session.
fn heir(fleet: &mut Fleet, rules_of_heir: SessionConfig) -> (usize, SessionId) {
    let owner = fleet.join(rules("a"), 1);
    fleet.pass_exactly(Duration::from_secs(1));
    let session = fleet.session_of(owner);
    fleet.members[owner].alive = false;
    let heir = fleet.join(rules_of_heir, 1);
    fleet.pass_exactly(Duration::from_secs(30));
    assert_eq!(fleet.led_by(heir, 1), 1);
    (heir, session)
}

#[test]
fn a_failed_deletion_is_tried_again_after_the_same_pause() {
    let mut fleet = Fleet { peer_answers_take: Duration::from_millis(100), ..Fleet::default() };
    let (heir, session) = heir(&mut fleet, rules("b"));
    fleet.blocked.insert(session, Fatal);
    fleet.members[heir].effects.clear();
    fleet.pass_exactly(Duration::from_secs(600));
    let deletes = |effect: &&Effect| matches!(effect, Effect::Peer { request: PeerRequest::Delete(_), .. });
    let deletions = fleet.members[heir].effects.iter().filter(deletes).count();
    // Ten leases after the end, and after each failure.
    assert!((3..=4).contains(&deletions), "{deletions} deletions");
}

#[test]
fn a_session_whose_object_others_delete_is_forgotten() {
    let (mut fleet, mut keeps_objects) = (Fleet::default(), rules("b"));
    keeps_objects.delete_after = None;
    let (heir, session) = heir(&mut fleet, keeps_objects);
    let knows = |fleet: &Fleet| format!("{:?}", fleet.members[heir].member).contains(&*session);
    assert!(knows(&fleet), "the object is there");
    fleet.sessions.remove(&session);
    fleet.pass_exactly(Duration::from_secs(120));
    assert!(!knows(&fleet));
}

#[test]
fn locks_of_an_unreadable_session_are_taken_whenever_reads_are_answered() {
    for (of_members, tenths) in (1..40).step_by(3).flat_map(|tenths| [(rules as fn(_) -> _, tenths), (listing, tenths)])
    {
        let mut fleet = Fleet { peer_answers_take: Duration::from_millis(100 * tenths), ..Fleet::default() };
        let owner = fleet.join(rules("a"), 1);
        fleet.pass_exactly(Duration::from_secs(1));
        fleet.members[owner].alive = false;
        fleet.blocked.insert(fleet.session_of(owner), Unreadable);
        let other = fleet.join(of_members("b"), 1);
        fleet.pass_exactly(Duration::from_secs(14));
        assert_eq!(fleet.led_by(other, 1), 0);
        fleet.pass_exactly(Duration::from_secs(76));
        assert_eq!(fleet.led_by(other, 1), 1, "{tenths} tenths of a second for an answer");
    }
}
