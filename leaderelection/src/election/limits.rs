//! Rule 22: new timings while the candidate runs.

use std::sync::Arc;
use std::time::Duration;

use super::effect::Effect;
use super::input::Jitter;
use super::machine::Election;
use super::phase::{Hold, Phase};
use super::rules::Rules;
use crate::clock::LocalInstant;

/// The times that count from the sending of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Limits {
    /// The time for which others leave the lease alone.
    pub(super) lease: Duration,
    /// The time for which the write gives leadership.
    pub(super) deadline: Duration,
}

impl Limits {
    /// The shorter of the times of both. The result keeps a margin if both do.
    pub(super) fn min(self, other: Self) -> Self {
        Self { lease: self.lease.min(other.lease), deadline: self.deadline.min(other.deadline) }
    }

    /// The end of a lease that is kept clear of the leader's work (rule 8).
    pub(super) fn stop_margin(self) -> Duration {
        self.lease.saturating_sub(self.deadline) / 8
    }
}

impl From<&Rules> for Limits {
    fn from(rules: &Rules) -> Self {
        Self { lease: rules.lease_duration, deadline: rules.renew_deadline }
    }
}

impl Hold {
    pub(super) fn valid_until(&self) -> LocalInstant {
        self.sent_at + self.limits.deadline
    }

    /// The earliest moment at which another candidate may take the lease.
    pub(super) fn lease_until(&self) -> LocalInstant {
        self.sent_at + self.limits.lease
    }
}

impl Election {
    /// Takes new timings. Shorter times count at once, because the next write may land without an answer. Longer times
    /// count once a write has landed that was sent with them.
    pub(super) fn take_rules(&mut self, now: LocalInstant, rules: Arc<Rules>, jitter: Jitter) {
        self.rules = rules;
        let limits = Limits::from(&*self.rules);
        if let Phase::Won { hold, .. } | Phase::Leading(hold) = &mut self.phase {
            hold.limits = hold.limits.min(limits);
        }
        self.expire(now);
        match &self.phase {
            Phase::Leading(hold) => self.effects.push_back(Effect::Extend(self.term(hold))),
            Phase::Following => self.pacing.look_at_new_pace(&self.rules, now, jitter),
            _ => {}
        }
    }
}
