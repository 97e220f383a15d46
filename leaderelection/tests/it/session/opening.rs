//! The creation of a session, by the one write that rule S1 allows.

use std::time::Duration;

use leaderelection::election::Request;
use leaderelection::sessions::machine::{Effect, Fact};

use super::fleet::{Fleet, rules};

#[test]
fn a_session_whose_creation_was_answered_too_late_is_never_renewed() {
    let mut fleet = Fleet { own_answers_take: Duration::from_secs(11), ..Fleet::default() };
    fleet.join(rules("a"), 1);
    let first = fleet.session_of(0);
    // The read, and then the write, whose answer comes a second after the renew deadline.
    fleet.pass_exactly(Duration::from_secs(12));
    fleet.own_answers_take = Duration::from_secs(0);
    fleet.pass_exactly(Duration::from_secs(30));
    let is_closed = |fact: &Fact| matches!(fact, Fact::Closed { session, .. } if *session == first);
    let is_write =
        |effect: &Effect| matches!(effect, Effect::Own { session, request: Request::Write(_) } if *session == first);
    let member = &fleet.members[0];
    assert!(member.facts.iter().any(is_closed), "{:?}", member.facts);
    assert_eq!(member.effects.iter().filter(|effect| is_write(effect)).count(), 1);
    assert_ne!(fleet.session_of(0), first);
    assert_eq!(fleet.led_by(0, 1), 1);
}
