//! One question to the checker: the candidates, their parts, and what may happen to them.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection_protocol::lease::Limits;

use super::action::Action;

/// One question to the checker. Times are in units of the clocks.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The advance of each candidate's clock in one step.
    pub(super) rates: Vec<u64>,
    /// Lease duration.
    pub(super) lease: u64,
    /// Renew deadline.
    pub(super) deadline: u64,
    /// n.
    pub(super) parts: usize,
    /// q.
    pub(super) needed: usize,
    /// The number of tokens after the first that are explored.
    pub(super) last_token: u64,
    /// The number of puts that are not answered as they should be, lost, doubted, or carried out late, and of writes that end
    /// although they are committed, or could go on.
    pub(super) faults: u8,
    /// `true` if the puts and reads that a write leaves to the background are carried out at any moment. Otherwise they are lost.
    pub(super) background: bool,
    /// `true` if a part may answer a poll at any moment before another. Otherwise all that answer do so at once.
    pub(super) slow_polls: bool,
    /// `true` if a plan's puts are carried out in any order. Otherwise in that of the plan.
    pub(super) any_order: bool,
    /// The number of writes that the candidates begin, if it is bounded.
    pub(super) writes: Option<u8>,
    /// The number of crashes. With any, each candidate takes its own name for free, because nobody shares it.
    pub(super) crashes: u8,
    /// `true` if a policy ends terms and candidacies.
    pub(super) stops: bool,
    /// `true` if a read tells the age of what it shows.
    pub(super) ages: bool,
    /// A part of which no read tells the age.
    pub(super) ageless: Option<usize>,
    /// The token of each part that somebody has released before; none for parts without an object.
    pub(super) tokens: Vec<u64>,
    /// `true` if the candidates compete for a job, whose work succeeds as soon as it begins.
    pub(super) job: bool,
    /// `true` if the last candidate competes for the lease alone, and not for the job.
    pub(super) plain: bool,
    /// `true` if a policy gives candidacies up, and begins others.
    pub(super) gives_up: bool,
    /// The number of requests. Of three candidates the last one asks, and never acquires.
    pub(super) requests: u8,
    /// The hostile parts are the last ones.
    pub(super) hostile: usize,
    /// The number of records that are forged in hostile parts.
    pub(super) forgeries: u8,
    /// The steps with which every history begins.
    pub(super) beginning: Vec<Action>,
}

impl Setup {
    pub(super) fn limits(&self) -> Limits {
        Limits { lease_duration: Duration::from_nanos(self.lease), renew_deadline: Duration::from_nanos(self.deadline) }
    }

    /// The reading of every clock, which never changes: all remembered moments move into the past instead.
    pub(super) fn now(&self) -> LocalInstant {
        LocalInstant::from_nanos(4 * self.lease)
    }

    /// Returns `true` if states that differ only in which candidate is which are the same.
    pub(super) fn is_alike(&self) -> bool {
        !self.plain
            && (self.requests == 0 || self.rates.len() == 2)
            && self.rates.iter().all(|rate| *rate == self.rates[0])
    }

    /// Returns `true` for a candidate that competes for the job.
    pub(super) fn has_job(&self, index: usize) -> bool {
        self.job && !(self.plain && index + 1 == self.rates.len())
    }

    /// Returns `true` for a candidate that asks the holder to hand over.
    pub(super) fn asks(&self, index: usize) -> bool {
        self.requests > 0 && (self.rates.len() == 2 || index == self.rates.len() - 1)
    }

    /// Returns `true` for a candidate that acquires.
    pub(super) fn acquires(&self, index: usize) -> bool {
        !self.asks(index) || self.rates.len() == 2
    }

    pub(super) fn hostile_parts(&self) -> std::ops::Range<usize> {
        self.parts - self.hostile..self.parts
    }
}
