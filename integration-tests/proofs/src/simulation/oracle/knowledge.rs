//! The knowledge on which all checks work.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use leaderelection::clock::LocalInstant;
use leaderelection::lock::JobId;

use super::object::ObjectHistory;
use super::process::Watched;
use crate::kit::{Timeline, stats};
use crate::simulation::clock::TrueTime;
use crate::simulation::names::{LOCKS, ProcessId, RequestId};
use crate::simulation::scenario::Scenario;

stats! {
    requests: u64 = "requests",
    writes: u64 = "writes that took effect",
    terms: u64 = "terms",
    deadlines: u64 = "terms that ended at the deadline",
    losses: u64 = "terms that ended because the record belonged to another holder",
    releases: u64 = "releases",
    crashes: u64 = "crashes",
    freezes: u64 = "freezes",
    standstills: u64 = "standstills in the midst of a step",
    duplicates: u64 = "reported duplicate identities",
    interventions: u64 = "interventions that took effect",
    strangers: u64 = "writes of strangers",
    jobs: u64 = "jobs done",
    repetitions: u64 = "jobs done again, without a mark that was read",
    messages: u64 = "messages of peers",
    late_creations: u64 = "late creations",
    failbacks: u64 = "requests of better candidates",
    forgiven: u64 = "times that a leader forgot such requests",
    forgeries: u64 = "forged records",
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(super) scenario: Scenario,
    pub(crate) timeline: Timeline,
    pub(super) processes: Vec<Watched>,
    pub(super) live: Vec<ProcessId>,
    /// The lock: its only object, or in a move what all locks show together.
    pub(super) object: ObjectHistory,
    /// In a move, each lock, the old one first.
    pub(super) halves: [ObjectHistory; LOCKS],
    pub(super) rollout: Rollout,
    pub(super) jobs: Jobs,
    pub(super) plans: Vec<Intervention>,
    /// The largest token of a term whose lease an operator took away. Such a term may overlap with the next.
    pub(super) deposed: Option<u64>,
    /// The largest token of a term.
    pub(super) last_token: Option<u64>,
    pub(crate) stats: Stats,
    /// The last end of a term.
    pub(super) last_led: TrueTime,
}

/// The rollout that is in flight in a move.
#[derive(Debug, Default)]
pub(super) struct Rollout {
    pub(super) number: usize,
    /// A candidate of the second rollout has led since all candidates are of it.
    pub(super) both_led: bool,
    /// The writes that are committed in as many locks as their writers need.
    pub(super) committed: BTreeSet<RequestId>,
    /// The moments at which those had reached the first of the locks, which may show a later write by now.
    pub(super) committed_since: BTreeMap<RequestId, TrueTime>,
    /// The moment since which enough locks show a release for everybody, if nothing else goes wrong.
    pub(super) released_since: Option<TrueTime>,
    /// The locks that each write has reached, by its id, whether or not they show it still.
    pub(super) reached: BTreeMap<Option<String>, BTreeSet<usize>>,
}

/// The jobs of a run.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// The processes that do jobs.
    pub(super) hosts: BTreeSet<ProcessId>,
    /// The calls of `run_once` that have not returned.
    pub(super) calls: BTreeMap<ProcessId, Call>,
    /// The jobs for which requests were sent.
    pub(super) of_requests: BTreeMap<RequestId, JobId>,
    /// The terms whose work has succeeded, with their jobs and the moments.
    pub(super) succeeded: BTreeMap<(ProcessId, u64), (JobId, LocalInstant)>,
    /// The jobs whose mark is committed, and the terms that wrote the marks.
    pub(super) marked: HashMap<JobId, BTreeSet<(ProcessId, u64)>>,
    /// The jobs whose marks have been written into a lock, the last one last.
    pub(super) written: Vec<JobId>,
    /// The jobs whose marks are committed in as many locks as their writers need.
    pub(super) committed: HashSet<JobId>,
    /// The jobs that a hostile writer says are done.
    pub(super) forged: BTreeSet<String>,
}

/// A call of `run_once` that has not returned.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) job: JobId,
    pub(super) since: TrueTime,
    pub(super) begun: bool,
    /// The term whose work is complete, and `true` if the work has succeeded.
    pub(super) ended: Option<(u64, bool)>,
}

/// One decision of the operator about one term.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// The holder of the term is to hand over.
    Transfer { of: u64, holder: String, to: String },
    /// The lease is taken away from the holder of the term.
    Release { of: u64, holder: String },
    /// The object is created anew, with this token.
    Recreate { token: u64 },
}

/// The result of an intervention, as its operator learns it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The intervention succeeded. `is_reached` tells that its aim needed no write.
    Done { is_reached: bool },
    /// The intervention did not happen.
    NotDone,
    /// The operator learns that the result is unknown.
    Unknown,
}

/// One intervention.
#[derive(Debug, Default)]
pub(super) struct Intervention {
    pub(super) plan: Option<Plan>,
    /// A write of the intervention has taken effect.
    pub(super) applied: bool,
    /// The store has lied to the operator about an effect, or about the object.
    pub(super) lied_to: bool,
    pub(super) outcome: Option<Outcome>,
}

impl Oracle {
    pub(crate) fn new(scenario: Scenario, events: usize) -> Self {
        Self { scenario, timeline: Timeline::new(events), ..Self::default() }
    }

    pub(super) fn now(&self) -> TrueTime {
        self.timeline.now
    }

    /// Tells of an event, with the time by the clock of the process that it concerns.
    pub(crate) fn log(&mut self, process: Option<ProcessId>, event: impl FnOnce() -> String) {
        let (now, concerned) = (self.now(), process.map(|process| (process, &self.processes[process])));
        self.timeline.log(|| match concerned {
            None => format!("{:>20}  {}", "", event()),
            Some((process, watched)) => {
                let local = format!("[{:.3}s]", watched.clock.local_at(now).as_nanos() as f64 / 1e9);
                format!("{local:>20}  node {} p{process}: {}", watched.node, event())
            }
        });
    }

    pub(super) fn live_but(&self, process: ProcessId) -> impl Iterator<Item = (ProcessId, &Watched)> {
        self.live.iter().filter(move |other| **other != process).map(|other| (*other, &self.processes[*other]))
    }
}
