//! The processes, the faults and the bounds of an exploration.

use std::time::Duration;

use leaderelection::lock::JobId;

use crate::phase::{Phase, Rollouts};

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
    pub tokens: Vec<Option<u64>>,
    /// A lock that a process has written before it crashed, in an earlier life, without the other lock: that lock, the process,
    /// and the token, which no term had.
    pub left: Option<(usize, usize, u64)>,
    /// `true` if every process takes a lease of its own identity at once.
    pub reclaims: bool,
    /// `true` if the locks tell the ages of their records, and every process believes them.
    pub ages: bool,
    /// `true` if the processes compete for one job, whose work succeeds as soon as it begins.
    pub job: bool,
    /// The rollouts; `None` if every process stays in its phase.
    pub rolls: Option<Rollouts>,
    /// `true` if a rollout waits for no leader of the second rollout, or a lock is restored although another lacks the last
    /// write.
    pub hasty: bool,
    /// `true` if a rollout waits for no process of two phases before.
    pub all_at_once: bool,
    /// `true` if the requests that are sent together are answered in any order, and `false` if in that of the locks.
    pub any_order: bool,
    /// A lock that never answers.
    pub gone: Option<usize>,
    /// A lock that may stop answering, at any moment and for good.
    pub stops: Option<usize>,
    /// A lock that carries out every write, whatever version the write names.
    pub careless: Option<usize>,
    /// The locks whose writer is hostile.
    pub hostile: Vec<usize>,
    /// The number of records that the hostile writer forges.
    pub forgeries: u8,
    /// A lock that may be restored once from a backup, as it was before its last write, while all locks show one write.
    pub restores: Option<usize>,
    /// The number of requests that are lost, doubted, late or slow.
    pub faults: u8,
    /// The number of crashes.
    pub crashes: u8,
    /// The number of times that an operator releases one of the locks.
    pub releases: u8,
    /// `true` if the last process leads before the others begin, and the first takes the lease back from its worse rank.
    pub takes_back: bool,
    /// `true` if the first process may not write the second lock.
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
        self.tokens.iter().flatten().copied().max()
    }

    /// Returns `true` if a leader can do without a lock that answers.
    pub(super) fn has_minorities(&self) -> bool {
        self.gone.is_none()
            && !self.job
            && self.faults > 0
            && self.phases.iter().any(|phase| phase.needs < phase.parts.len())
    }

    /// The job of the processes, if they have one.
    pub(super) fn job_id(&self) -> Option<JobId> {
        self.job.then(job)
    }
}

pub(super) fn job() -> JobId {
    "job".parse().expect("a valid name")
}
