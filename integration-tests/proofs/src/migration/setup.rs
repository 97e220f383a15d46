//! The processes, the faults and the bounds of an exploration.

use std::time::Duration;

use leaderelection::lock::JobId;
use leaderelection::migration::view::Half;

use super::phase::{Direction, Phase};

/// The identities of the processes.
pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];

/// The unit of the modelled clock. All processes share the clock, because one lock's own model has clocks that drift.
pub(super) const UNIT: Duration = Duration::from_secs(1);

/// The retry period.
pub(super) const RETRY: u8 = 1;

/// The processes, the faults and the bounds of an exploration.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The phase in which each process begins.
    pub phases: Vec<Phase>,
    /// The lease duration of each process, in units.
    pub leases: [u8; 2],
    /// The renew deadline of each process, in units.
    pub deadlines: [u8; 2],
    /// The token in each lock at the beginning, in a released record; `None` if there is no object.
    pub tokens: [Option<u64>; 2],
    /// A lock that a process has written before it crashed, in an earlier life, without the other lock: that lock, the process,
    /// and the token, which no term had.
    pub left: Option<(Half, usize, u64)>,
    /// `true` if every process takes a lease of its own identity at once.
    pub reclaims: bool,
    /// `true` if the locks tell the ages of their records, and every process believes them.
    pub ages: bool,
    /// `true` if the processes compete for one job, whose work succeeds as soon as it begins.
    pub job: bool,
    /// The direction of the rollouts; `None` if every process stays in its phase.
    pub rolls: Option<Direction>,
    /// `true` if a rollout waits for no leader that holds both locks.
    pub hasty: bool,
    /// `true` if a rollout waits for no process of two phases before.
    pub all_at_once: bool,
    /// `true` if a look reads the two locks in any order, and `false` if it reads the old lock first.
    pub any_order: bool,
    /// The number of requests that are lost, doubted, late or slow.
    pub faults: u8,
    /// The number of crashes.
    pub crashes: u8,
    /// The number of times that an operator releases one of the locks.
    pub releases: u8,
    /// `true` if the last process leads before the others begin, and the first takes the lease back from its worse rank.
    pub takes_back: bool,
    /// `true` if the first process may not write the new lock.
    pub is_refused: bool,
    /// The last moment of a fault, a crash, a release by an operator, or the beginning of a rollout, in units.
    pub eventful: u8,
    /// The longest time without a leader after the last of these events, in units; `None` if the exploration ends with the
    /// events, and the question is not asked.
    pub gap: Option<u8>,
}

impl Setup {
    /// The last moment that is explored: a gap that begins with the last event has become too long by then.
    pub(super) fn horizon(&self) -> u8 {
        self.eventful + self.gap.map_or(0, |gap| gap + 1)
    }

    /// The highest token in the locks at the beginning.
    pub(super) fn first_token(&self) -> Option<u64> {
        self.tokens.into_iter().flatten().max()
    }

    /// The job of the processes, if they have one.
    pub(super) fn job_id(&self) -> Option<JobId> {
        self.job.then(job)
    }
}

pub(super) fn job() -> JobId {
    "job".parse().expect("a valid name")
}
