//! One process: the real state machine, and the requests that it waits for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use leaderelection::Version;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{Answer, Draw, EndReason, Failure, Jitter, Request, Stamp, Write};
use leaderelection::session::{DrawSession, LockId, Member, SessionId};

use super::world::{Cell, Setup, Violation};

/// The subject of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The object of the process's own session.
    Own(SessionId),
    /// The object of another session.
    Peer(SessionId),
    /// All sessions.
    Sessions,
    /// One lock.
    Lock(usize),
    /// All locks.
    Locks,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ask {
    /// A read, or a listing.
    Read,
    /// A conditional write.
    Write(Write),
    /// A conditional deletion.
    Delete(Version),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reply {
    /// The answer to a read or a write.
    Object(Answer),
    /// The answer to a deletion.
    Deleted(Result<(), Failure>),
}

/// A request that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Flight {
    /// The request is on its way to the store.
    Sent(Ask),
    /// The store has handled the request, and the answer is on its way back.
    Answered(Reply),
}

/// The work of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Work {
    /// There is no work.
    None,
    /// The work runs.
    Running,
    /// The machine has ordered the driver to drop the work, and the work still runs.
    Dropped,
    /// The machine no longer waits for the work, and the work still runs.
    Abandoned,
}

/// A process's view of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seat {
    /// The term that was valid when the model last checked.
    pub(super) valid: Option<u64>,
    /// The last term of this process that has ended.
    pub(super) ended: Option<u64>,
    /// `true` after an order to start a term, until the order to stop that term.
    pub(super) leads: bool,
    pub(super) work: Work,
    /// `true` if the machine has to be told at once that the work has ended.
    pub(super) ends_now: bool,
    /// `true` if the elector has to compete again.
    pub(super) again: bool,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) member: Member,
    pub(super) flights: BTreeMap<Target, Flight>,
    pub(super) seats: Vec<Seat>,
    /// The end of the lease of the own session, by the machine's orders to the driver.
    pub(super) lease_end: Option<LocalInstant>,
    /// The number of sessions that this node has opened, all its processes together.
    pub(super) opened: usize,
    /// `true` after the process was asked to stop.
    pub(super) stopped: bool,
}

/// A source of ids without chance.
pub(super) struct Ids<'a> {
    pub(super) next: usize,
    pub(super) identity: &'static str,
    pub(super) opened: &'a mut usize,
}

impl Draw for Ids<'_> {
    fn jitter(&mut self) -> Jitter {
        Jitter::default()
    }

    fn stamp(&mut self) -> Stamp {
        self.next += 1;
        Stamp { write_id: (self.next - 1).to_string(), time: DateTime::UNIX_EPOCH }
    }
}

impl DrawSession for Ids<'_> {
    fn session(&mut self) -> Arc<str> {
        *self.opened += 1;
        format!("{}{}", self.identity, self.opened).into()
    }
}

impl Node {
    pub(super) fn new(setup: &Setup, index: usize, opened: usize) -> Self {
        let mut member = Member::new(setup.rules(index));
        for lock in 0..setup.locks {
            member.add_lock(&format!("lock-{lock}"));
        }
        let seat = Seat { valid: None, ended: None, leads: false, work: Work::None, ends_now: false, again: false };
        Self {
            member,
            flights: BTreeMap::new(),
            seats: vec![seat; setup.locks],
            lease_end: None,
            opened,
            stopped: false,
        }
    }

    /// Returns the token of the term of a lock that this node leads.
    pub(super) fn leading(&self, setup: &Setup, lock: usize) -> Option<u64> {
        self.member.leading(now(setup), id(lock)).map(|term| term.fencing_token)
    }

    pub(super) fn works(&self, lock: usize) -> bool {
        self.seats[lock].work != Work::None
    }

    /// Returns the promise that sending a request now would break.
    pub(super) fn may_send(&self, target: &Target, request: &Request) -> Option<Violation> {
        let Request::Write(Write { record, .. }) = request else { return None };
        if !record.is_released() {
            return None;
        }
        let works = match target {
            Target::Own(_) => (0..self.seats.len()).any(|lock| self.works(lock)),
            Target::Lock(lock) => self.works(*lock),
            _ => false,
        };
        works.then_some(Violation::EarlyRelease)
    }

    /// Returns the promise that the end of a term for this reason breaks.
    pub(super) fn stops(
        reason: &EndReason,
        token: u64,
        cell: Option<&Cell>,
        session: Option<&Cell>,
        index: usize,
    ) -> Option<Violation> {
        let deposed = matches!(
            reason,
            EndReason::TakenOver { .. } | EndReason::Emptied | EndReason::Deleted | EndReason::Unreadable
        );
        let ours = |cell: Option<&Cell>| cell.is_some_and(|cell| cell.writer == Some(index));
        let still_ours =
            ours(session) && ours(cell) && cell.is_some_and(|cell| cell.record.leader_transitions == token);
        (deposed && still_ours).then_some(Violation::SpuriousLoss)
    }

    /// Compares the terms that are valid now with the terms that have ended.
    pub(super) fn look(&mut self, setup: &Setup) -> Option<Violation> {
        let mut broken = None;
        for lock in 0..self.seats.len() {
            let valid = self.leading(setup, lock);
            let seat = &mut self.seats[lock];
            if seat.valid != valid {
                seat.ended = seat.ended.max(seat.valid);
                seat.valid = valid;
            }
            if valid.is_some() && valid <= seat.ended {
                broken = Some(Violation::Revival);
            }
        }
        broken
    }

    /// Returns the promise that is broken after a step of the machine: work whose lease is over was not dropped.
    pub(super) fn after_step(&self, setup: &Setup) -> Option<Violation> {
        let is_over = self.lease_end.is_some_and(|end| now(setup) >= end);
        let works = self.seats.iter().any(|seat| seat.work == Work::Running);
        (is_over && works).then_some(Violation::Overrun)
    }
}

pub(super) fn id(lock: usize) -> LockId {
    LockId(u32::try_from(lock).expect("few locks"))
}

pub(super) fn now(setup: &Setup) -> LocalInstant {
    LocalInstant::default() + Duration::from_nanos(setup.now())
}
