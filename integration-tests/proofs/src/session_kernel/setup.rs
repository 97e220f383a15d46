//! One question to the checker: the processes, their clocks and locks, and what may happen to them.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection_protocol::lease::Limits;
use leaderelection_protocol::session::Bounds;

use super::action::Action;

/// Kinds of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slow {
    /// Reads.
    pub(super) reads: bool,
    /// Writes to a process's own session.
    pub(super) own: bool,
    /// Writes that end other sessions.
    pub(super) ends: bool,
    /// Writes to locks.
    pub(super) locks: bool,
}

/// One question to the checker. Times are in units of the clocks.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The advance of each process's clock in one step.
    pub(super) rates: Vec<u64>,
    /// The number of locks.
    pub(super) locks: u32,
    /// Lease duration.
    pub(super) lease: u64,
    /// Renew deadline.
    pub(super) deadline: u64,
    /// The lease duration of the last process, if it differs. Its deadline is one unit shorter.
    pub(super) other_lease: Option<u64>,
    /// The longest pause between polls; `None` if a poll counts forever.
    pub(super) poll_pause: Option<u64>,
    /// The number of sessions that each process opens.
    pub(super) sessions: u16,
    /// The number of a lock's tokens after the first that are explored.
    pub(super) last_token: u64,
    /// The requests that take time. Any other is answered as soon as it is sent.
    pub(super) slow: Slow,
    /// The number of writes that may be in flight after their senders stopped waiting. Further writes are lost.
    pub(super) late_writes: usize,
    /// The number of writes by which a read may be late.
    pub(super) stale_reads: usize,
    /// `true` if a read fails at any moment.
    pub(super) failed_reads: bool,
    /// `true` if processes crash, and start again with the same identity.
    pub(super) crashes: bool,
    /// `true` if a policy ends terms and sessions, and releases what it has.
    pub(super) stops: bool,
    /// `true` if the work of a term ends at any later moment. Otherwise it ends with the term.
    pub(super) late_work: bool,
    /// `true` if sessions are listed, and locks.
    pub(super) lists: bool,
    /// `true` if one poll of its lock by a leader, by a read or a listing, is answered at any later moment.
    pub(super) late_poll: bool,
    /// `true` if one listing of locks after the deletion of a lock is answered at any later moment.
    pub(super) late_listing: bool,
    /// `true` if processes forget locks, and see them anew.
    pub(super) forgets: bool,
    /// `true` if a plain elector holds the locks at the beginning, until it releases them.
    pub(super) plain: bool,
    /// `true` if anybody names the ids of sessions' writes to anybody.
    pub(super) hints: bool,
    /// `true` if processes delete the objects of ended sessions, and the network then delivers a creation once more.
    pub(super) deletes: bool,
    /// `true` if an operator deletes the object of a session, once.
    pub(super) session_deletion: bool,
    /// `true` if an operator deletes the object of a lock, once.
    pub(super) lock_deletion: bool,
    /// `true` if somebody replaces the object of a session by something that is no record, once, and puts it back later.
    pub(super) spoils: bool,
    /// `true` if the clocks' rates are outside the bound that exclusion needs.
    pub(super) lawless: bool,
    /// The steps with which every history begins. A policy stops and lists in these.
    pub(super) beginning: Vec<Action>,
    /// A process that does nothing after that.
    pub(super) silent: Option<usize>,
}

impl Setup {
    /// L and D of a process.
    pub(super) fn limits(&self, node: usize) -> Limits {
        let (lease, deadline) = match self.other_lease.filter(|_| node + 1 == self.rates.len()) {
            Some(lease) => (lease, lease - 1),
            None => (self.lease, self.deadline),
        };
        Limits { lease_duration: Duration::from_nanos(lease), renew_deadline: Duration::from_nanos(deadline) }
    }

    pub(super) fn bounds(&self, node: usize) -> Bounds {
        let pause = Duration::from_nanos(self.poll_pause.unwrap_or(2 * FOREVER));
        Bounds::new(self.limits(node), pause)
    }

    /// The greatest age of a past event that matters.
    pub(super) fn oldest(&self) -> u64 {
        self.lease.max(self.other_lease.unwrap_or_default())
    }

    /// The reading of every clock, which never changes: all remembered moments move into the past instead.
    pub(super) fn now(&self) -> LocalInstant {
        LocalInstant::from_nanos(4 * self.oldest())
    }

    /// The setup in which the steps of the beginning are taken.
    pub(super) fn with_all_deeds(&self) -> Self {
        Self { stops: true, lists: true, silent: None, ..self.clone() }
    }

    /// Returns `true` if states that differ only in which process is which are the same.
    pub(super) fn is_alike(&self) -> bool {
        self.other_lease.is_none() && self.rates.iter().all(|rate| *rate == self.rates[0])
    }
}

/// A moment that never comes nearer.
pub(super) const FOREVER: u64 = u64::MAX / 4;
