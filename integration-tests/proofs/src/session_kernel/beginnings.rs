//! The beginnings of histories of which only the rest is explored: from nothing on, they have more states than can be explored.

use super::action::{Action, Deed, Target};
use super::node::session_of;
use super::setup::Setup;

/// A listing has shown the first of two processes the session of the second one, which has this lease, and no lock names that lease.
pub(super) fn a_session_that_was_listed(setup: Setup, lease: u64) -> Setup {
    let setup = Setup { other_lease: Some(lease), ..setup };
    let session = session_of(&setup, 1, 0);
    let beginning = vec![
        Action::Node(1, Deed::Read(Target::Own(session))),
        Action::Node(1, Deed::Create),
        Action::Node(0, Deed::List(session)),
    ];
    Setup { beginning, ..setup }
}

/// The same, and the first process has read the session.
pub(super) fn a_session_that_was_read(setup: Setup, lease: u64) -> Setup {
    let mut setup = a_session_that_was_listed(setup, lease);
    setup.beginning.push(Action::Node(0, Deed::Read(Target::Other(session_of(&setup, 1, 0)))));
    setup
}

/// The first of three processes has seen the second one hold a lock, and has read the session of the third. Since then, the second one has
/// released the lock, and the third leads it, when somebody deletes it. The second one does nothing more.
pub(super) fn a_lock_that_has_changed_hands(setup: Setup) -> Setup {
    let [waits, released, leads] = [0, 1, 2].map(|index| move |deed| Action::Node(index, deed));
    let [one, two, three] = [0, 1, 2].map(|index| session_of(&setup, index, 0));
    let beginning = vec![
        waits(Deed::Read(Target::Own(one))),
        waits(Deed::Create),
        released(Deed::Read(Target::Own(two))),
        released(Deed::Create),
        leads(Deed::Read(Target::Own(three))),
        leads(Deed::Create),
        waits(Deed::List(three)),
        waits(Deed::Read(Target::Other(three))),
        released(Deed::Read(Target::Lock(0))),
        released(Deed::Take(0)),
        released(Deed::Start(0)),
        waits(Deed::Read(Target::Lock(0))),
        released(Deed::EndTerm(0)),
        released(Deed::Release(0)),
        leads(Deed::Read(Target::Lock(0))),
        leads(Deed::Take(0)),
        leads(Deed::Start(0)),
        Action::DeleteLock(0),
        waits(Deed::Read(Target::Lock(0))),
    ];
    Setup { beginning, silent: Some(1), ..setup }
}

/// The first of two processes has led a lock until its session was ended, and the second one leads it since, when somebody deletes it. The
/// first one has seen neither.
pub(super) fn a_lock_that_was_taken_over(setup: Setup) -> Setup {
    let [led, leads] = [0, 1].map(|index| move |deed| Action::Node(index, deed));
    let [one, two] = [0, 1].map(|index| session_of(&setup, index, 0));
    let beginning = vec![
        led(Deed::Read(Target::Own(one))),
        led(Deed::Create),
        led(Deed::Read(Target::Lock(0))),
        led(Deed::Take(0)),
        led(Deed::Start(0)),
        leads(Deed::Read(Target::Own(two))),
        leads(Deed::Create),
        leads(Deed::Read(Target::Lock(0))),
        leads(Deed::Read(Target::Other(one))),
        Action::Tick,
        leads(Deed::Renew),
        Action::Tick,
        leads(Deed::End(one)),
        leads(Deed::Take(0)),
        leads(Deed::Start(0)),
        Action::DeleteLock(0),
        led(Deed::Read(Target::Lock(0))),
    ];
    Setup { beginning, ..setup }
}
