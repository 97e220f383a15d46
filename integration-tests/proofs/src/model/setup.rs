//! One question to the checker: the candidates, their clocks, and what may happen to them.

use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{ElectionConfig, WorkEnd};
use leaderelection::lock::JobId;

/// The identities of the nodes. They are ids, as no node compares identities for more than equality.
pub const A: &str = "#a";
/// The second identity.
pub const B: &str = "#b";
/// The third identity.
pub(super) const C: &str = "#c";

/// The number of times that the time before a request for the lease doubles at most.
pub(super) const MOST_DOUBLINGS: u8 = 1;

/// The behaviour of the work of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// The work begins at once, and ends as soon as it is cancelled.
    #[default]
    Prompt,
    /// The work begins at once, and ends at any later moment.
    EndsLate,
    /// The work is polled for the first time at any later moment, and ends as soon as it is cancelled.
    BeginsLate,
}

/// One question to the checker.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The identity of each node, and the advance of its clock in one step.
    pub nodes: Vec<(&'static str, u64)>,
    /// Lease duration in clock units.
    pub lease: u64,
    /// The lease duration of all nodes but the first, if it differs: timings are changed at one node after the other.
    pub other_lease: Option<u64>,
    /// The number of times that a node gets other timings while it runs: the longer of two pairs of lease and deadline, or
    /// the first pair again.
    pub reconfigures: usize,
    /// The part by which the other timings are longer.
    pub longer: u64,
    /// The rank of the first node and that of the others.
    pub ranks: (u8, u8),
    /// The first node takes the lease back.
    pub takes_back: bool,
    /// Renew deadline in clock units.
    pub renew: u64,
    /// Retry period in clock units.
    pub retry: u64,
    /// The time in clock units before the renew deadline at which a leader asks once more that was asked to wait.
    pub timeout: u64,
    /// The pause between the reads of a candidate while the leader renews, if it is longer than the retry period.
    pub follower: Option<u64>,
    /// The number of tokens after the first that are explored.
    pub last_token: u64,
    /// The number of writes that may be in flight after their senders stopped waiting. Further writes are lost.
    pub late_writes: usize,
    /// `true` if the answer to a read is delivered as soon as the read arrives. A slow read then arrives late.
    pub instant_reads: bool,
    /// `true` if the clocks' rates are within the bound that exclusion needs. Without this bound, exclusion is not
    /// checked.
    pub trusted_clocks: bool,
    /// `true` if nodes crash, and start again with the same identity.
    pub crashes: bool,
    /// `true` if nodes are asked to stop and to step down.
    pub stops: bool,
    /// `true` if the work of a term may fail at any moment.
    pub fails: bool,
    /// The behaviour of the work of a term.
    pub work: Manner,
    /// `true` if nodes release their lease at the end of a term.
    pub releases: bool,
    /// `true` if an operator deletes the object, once. Then only `Violation::Haste` is checked.
    pub deletion: bool,
    /// The number of times that an operator asks for another leader.
    pub transfers: usize,
    /// `true` if somebody replaces the record by something that is none, once, and puts it back later.
    pub spoils: bool,
    /// `true` if nodes take a lease under their own identity at once, as after a restart.
    pub reclaims: bool,
    /// `true` if answers may be wrong: a conflict or a refusal after the write was applied.
    pub lies: bool,
    /// `true` if answers may ask a node to send nothing for a lease duration.
    pub waits: bool,
    /// The number of nodes that are candidates for one job, which has to succeed only once. The others have no job.
    pub jobs: usize,
    /// The clock by which the store tells how old the object is; `None` if it does not tell.
    pub store_clock: Option<StoreClock>,
    /// The number of messages of peers, true and false, that count at some node.
    pub messages: usize,
    /// `true` if only exclusion is checked. A history then continues after another promise was broken.
    pub only_exclusion: bool,
}

/// The clocks of the store's servers (rule 19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreClock {
    /// The advance of the store's clocks in one step.
    pub rate: u64,
    /// The time by which an answer makes the object older than it is, because two clocks disagree.
    pub error: u64,
    /// The time by which the candidates expect the store's clocks to disagree.
    pub slack: u64,
}

impl Setup {
    /// The rules of the node at `index`, with its first timings or with the longer ones.
    pub fn rules(&self, index: usize, is_longer: bool) -> ElectionConfig {
        let nanos = Duration::from_nanos;
        let lease = self.lease_of(index);
        // A longer lease has a longer deadline, so that the leader uses the time that others must wait.
        let renew = self.renew + lease.saturating_sub(self.lease);
        let longer = if is_longer { self.longer } else { 0 };
        let mut rules =
            ElectionConfig::new(self.nodes[index].0, nanos(lease + longer), nanos(renew + longer), nanos(self.retry));
        rules.request_timeout = nanos(self.timeout);
        rules.follower_interval = nanos(self.follower_interval());
        rules.rank = self.rank_of(index);
        rules.failback = self.takes_back && index == 0;
        rules.failback_doublings = MOST_DOUBLINGS;
        rules.reclaim_own_identity = self.reclaims;
        rules.release_on_cancel = self.releases;
        rules.store_clock_slack = self.store_clock.map(|clock| nanos(clock.slack));
        if self.messages > 0 {
            rules.background_interval = nanos(lease + 2 * self.retry);
        }
        rules
    }

    /// The lease duration of the node at `index`, in clock units.
    pub fn lease_of(&self, index: usize) -> u64 {
        self.other_lease.filter(|_| index > 0).unwrap_or(self.lease)
    }

    /// The pause between the reads of a candidate while the leader renews.
    pub fn follower_interval(&self) -> u64 {
        self.follower.unwrap_or(self.retry)
    }

    /// The rank of the node at `index`.
    pub fn rank_of(&self, index: usize) -> u8 {
        if index == 0 { self.ranks.0 } else { self.ranks.1 }
    }

    /// Returns `true` if the nodes have unequal ranks.
    pub fn has_ranks(&self) -> bool {
        self.ranks.0 != self.ranks.1
    }

    /// The longest lease duration of a node.
    pub fn longest_lease(&self) -> u64 {
        self.lease.max(self.other_lease.unwrap_or_default()) + self.longer
    }

    /// The greatest age of a past event that matters.
    pub fn longest_memory(&self) -> u64 {
        self.longest_lease() * if self.takes_back { 1 << MOST_DOUBLINGS } else { 1 }
    }

    /// Returns the reading of every clock, which never changes: all remembered moments move into the past instead. The
    /// reading is far enough from zero for the longest time that matters.
    pub fn now(&self) -> LocalInstant {
        LocalInstant::default() + Duration::from_nanos(4 * self.longest_lease() + 4 * self.retry)
    }

    /// Returns `true` if the node at `index` is a candidate for the job.
    pub(super) fn has_job(&self, index: usize) -> bool {
        index < self.jobs
    }

    /// The job of the node at `index`, if the node has one.
    pub(super) fn job_of(&self, index: usize) -> Option<JobId> {
        self.has_job(index).then(|| "job".parse().expect("a valid name"))
    }

    /// The end of cancelled work.
    pub(super) fn told_end(&self, index: usize) -> WorkEnd {
        if self.has_job(index) { WorkEnd::Failed } else { WorkEnd::Complete }
    }

    pub(super) fn is_done(&self, record: &LeaderElectionRecord) -> bool {
        self.job_of(0).is_some_and(|job| record.is_done(&job))
    }
}
