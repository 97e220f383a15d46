//! One question to the checker: the candidates, their clocks, and what may happen to them.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection_protocol::lease::Limits;

/// One question to the checker. Times are in units of the clocks.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The advance of each candidate's clock in one step.
    pub(super) rates: Vec<u64>,
    /// `true` if all candidates have one identity.
    pub(super) shared: bool,
    /// Lease duration.
    pub(super) lease: u64,
    /// Renew deadline.
    pub(super) deadline: u64,
    /// The lease duration of all candidates but the first, if it differs. Their deadline is one unit shorter.
    pub(super) other_lease: Option<u64>,
    /// The other lease duration and deadline, between which and the first ones candidates change.
    pub(super) retimed: (u64, u64),
    /// The number of changes of the timings.
    pub(super) reconfigures: u8,
    /// The number of tokens after the first that are explored.
    pub(super) last_token: u64,
    /// The number of writes that may be in flight after their senders stopped waiting. Further writes are lost.
    pub(super) late_writes: usize,
    /// `true` if reads take time. Otherwise a read is answered as soon as it is sent.
    pub(super) slow_reads: bool,
    /// `true` if an error may be the answer to a write that is committed, other than one that leaves the outcome open.
    pub(super) lies: bool,
    /// `true` if candidates crash, and start again with the same identity.
    pub(super) crashes: bool,
    /// `true` if a policy ends terms and candidacies.
    pub(super) stops: bool,
    /// `true` if a policy ends a term before its driver has carried out the events of the last answer.
    pub(super) stops_at_once: bool,
    /// `true` if the work of a term ends at any later moment. Otherwise it ends as soon as it is cancelled.
    pub(super) late_work: bool,
    /// `true` if anybody names the ids of writes to anybody, at any moment after their sends.
    pub(super) hints: bool,
    /// The number of requests to hand over, of candidates and operators.
    pub(super) requests: u8,
    /// `true` if an operator deletes the object, once. Tokens may start again, so only the wait after it is checked.
    pub(super) deletion: bool,
    /// `true` if somebody replaces the record by something that is none, once, and puts it back later.
    pub(super) spoils: bool,
    /// `true` if candidates acquire a lease under their own identity at once.
    pub(super) reclaims: bool,
    /// `true` if an elector of another library, whose records have no ids, holds the lease first.
    pub(super) foreign: bool,
    /// `true` if the driver of a candidate is started again, with the same lease.
    pub(super) restarts: bool,
    /// The number of candidates for the one job.
    pub(super) jobs: usize,
    /// The rate of the store's clock, the time by which an answer makes the object older than it is, and the time by which
    /// candidates expect that.
    pub(super) store_clock: Option<(u64, u64, u64)>,
    /// `true` if the clocks' rates are outside the bound that exclusion needs.
    pub(super) lawless: bool,
}

impl Setup {
    /// L and D of a candidate, with its first timings or the other ones.
    pub(super) fn limits(&self, node: usize, is_retimed: bool) -> Limits {
        let first = match self.other_lease.filter(|_| node > 0) {
            Some(lease) => (lease, lease - 1),
            None => (self.lease, self.deadline),
        };
        let (lease, deadline) = if is_retimed { self.retimed } else { first };
        Limits { lease_duration: Duration::from_nanos(lease), renew_deadline: Duration::from_nanos(deadline) }
    }

    /// The greatest age of a past event that matters: that of the longest lease.
    pub(super) fn oldest(&self) -> u64 {
        self.lease.max(self.other_lease.unwrap_or_default()).max(self.retimed.0)
    }

    /// The reading of every clock, which never changes: all remembered moments move into the past instead.
    pub(super) fn now(&self) -> LocalInstant {
        LocalInstant::from_nanos(4 * self.oldest())
    }

    pub(super) fn has_job(&self, node: usize) -> bool {
        node < self.jobs
    }

    /// Returns `true` if states that differ only in which candidate is which are the same.
    pub(super) fn is_alike(&self) -> bool {
        let same_clocks = self.rates.iter().all(|rate| *rate == self.rates[0]);
        same_clocks && self.other_lease.is_none() && [0, self.rates.len()].contains(&self.jobs)
    }
}
