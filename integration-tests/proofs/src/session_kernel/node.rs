//! One process: its own session, what it knows of others, and its locks.

use leaderelection::clock::LocalInstant;
use leaderelection_protocol::lease::Lease;
use leaderelection_protocol::session::{Directory, LockTable};

use super::setup::Setup;
use super::tiny::Tiny;
use crate::kernel::Id;
use crate::kit::{Seat, Work};

/// A process.
#[derive(Clone, Debug, Hash)]
pub(super) struct Node {
    pub(super) own: Lease<Tiny>,
    /// The number of sessions that the process and those before it have prepared.
    pub(super) opened: u16,
    pub(super) others: Directory<Tiny>,
    pub(super) locks: LockTable<Tiny>,
    pub(super) seats: Vec<Seat>,
    /// The session of each lock's work.
    pub(super) work_of: Vec<Option<Id>>,
    /// A listing that is in flight: the version that it has found of a lock, and the moment until which that counts as a poll.
    pub(super) listing: Option<(Option<Id>, LocalInstant)>,
    /// `true` for each lock that the process has seen.
    pub(super) has_seen: Vec<bool>,
}

impl Node {
    /// Starts a process. Those before it have prepared `opened` sessions.
    pub(super) fn new(setup: &Setup, index: usize, opened: u16) -> Self {
        let (me, limits) = (name_of(index), setup.limits(index));
        let mut locks = LockTable::new(me, setup.bounds(index));
        (0..setup.locks).for_each(|lock| locks.add(lock));
        let count = setup.locks as usize;
        Self {
            own: Lease::of_session(session_of(setup, index, opened), me, limits),
            opened: opened + 1,
            others: Directory::new(limits.lease_duration),
            locks,
            seats: vec![Seat::default(); count],
            work_of: vec![None; count],
            listing: None,
            has_seen: vec![false; count],
        }
    }

    /// Prepares the next session.
    pub(super) fn next_session(&mut self, setup: &Setup, index: usize) {
        let id = session_of(setup, index, self.opened);
        self.own = Lease::of_session(id, name_of(index), setup.limits(index));
        self.opened += 1;
    }

    /// The local session.
    pub(super) fn session(&self) -> Id {
        *self.own.session().expect("a session")
    }

    /// The token of the term of a lock that is valid.
    pub(super) fn leading(&self, setup: &Setup, lock: u32) -> Option<u64> {
        self.locks.term(setup.now(), lock, &self.own).map(|term| term.token())
    }

    pub(super) fn works(&self, lock: u32) -> bool {
        self.seats[lock as usize].work != Work::None
    }

    /// Returns `true` if work runs that needs the local session, and was not given up.
    pub(super) fn works_for_session(&self) -> bool {
        let works = |seat: &Seat| matches!(seat.work, Work::Running | Work::Dropped);
        self.seats.iter().zip(&self.work_of).any(|(seat, of)| works(seat) && *of == Some(self.session()))
    }

    /// Returns `true` if the process has this session, and its window is open.
    pub(super) fn has_open(&self, setup: &Setup, session: Id) -> bool {
        self.session() == session && self.own.term(setup.now()).is_some()
    }
}

pub(super) fn name_of(index: usize) -> Id {
    Id::of(index)
}

pub(super) fn session_of(setup: &Setup, index: usize, opened: u16) -> Id {
    Id::of(setup.rates.len() * (usize::from(opened) + 1) + index)
}

/// The number of ids that are names of processes and sessions.
pub(super) fn names(setup: &Setup) -> Id {
    // One session more is prepared than is opened.
    Id::of(setup.rates.len() * (usize::from(setup.sessions) + 3))
}
