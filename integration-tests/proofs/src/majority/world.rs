//! The locks, and the processes that compete for some of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{Election, ElectionConfig, Purpose};
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::JobId;
use leaderelection::majority::parts::PollAnswers;
use leaderelection::majority::view::View;
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

use super::setup::{NAMES, RETRY, Setup, UNIT, job};
use super::write::{Put, Writing};
use crate::kit::{Ids, Late, promises};
use crate::phase::Phase;

/// The moment of the writes before the beginning, which is further back than any lease.
const LONG_AGO: i8 = -10;

promises! {
    /// A term began whose token is not larger than that of every earlier term on either lock.
    TokenWentBack = "tokens rise",
    /// A term ended because the leader took its own write for another's.
    LostToItself = "no term is lost to itself",
    /// A candidate kept one lock, although the other was refused.
    KeptHalf = "no half is kept",
    /// A write erased the mark of the job.
    LostMark = "marks are kept",
    /// A write began a term for the job that the lock said is done.
    Repetition = "the job is done once",
}

/// A record in one of the locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stored {
    pub(super) record: Arc<LeaderElectionRecord>,
    pub(super) version: Version,
    /// The moment of the write, if the locks tell ages.
    pub(super) written: Option<i8>,
}

impl Stored {
    pub(super) fn is_held(&self) -> bool {
        !self.record.is_released()
    }

    /// Returns `true` if the record says that the job is done.
    pub(super) fn is_done(&self) -> bool {
        self.record.is_done(&job())
    }

    /// Returns the promise that a write breaks which replaces this record.
    pub(super) fn broken_by(&self, record: &LeaderElectionRecord) -> Option<Violation> {
        let begins = !record.is_released() && record.leader_transitions > self.record.leader_transitions;
        match self.is_done() {
            true if begins => Some(Violation::Repetition),
            true if !record.is_done(&job()) => Some(Violation::LostMark),
            _ => None,
        }
    }

    pub(super) fn shown(&self, now: u8) -> VersionedRecord {
        let age = self.written.map(|written| UNIT * (i32::from(now) - i32::from(written)).unsigned_abs());
        VersionedRecord::new((*self.record).clone(), self.version.clone()).with_age(age)
    }
}

/// A call of a process, and what is left of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Call {
    /// A read of the locks, with the answers so far, and the parts that it waits for.
    Poll(PollAnswers, BTreeSet<usize>),
    /// A write, and its requests that are in flight.
    Write(Purpose, Box<Writing>, Vec<Put>),
    /// The writes that roll back what a write has taken, and the error of that write.
    Return(Vec<Put>, StoreErrorKind),
}

/// The requests of the writes of a term whose answers their process did not wait for: one for each lock at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Background {
    pub(super) puts: Vec<Put>,
    /// The locks, each with the record of the write that has found its version unknown.
    pub(super) reads: Vec<(Arc<LeaderElectionRecord>, usize)>,
}

impl Background {
    pub(super) fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.reads.is_empty()
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = usize> {
        self.puts.iter().map(|put| put.part).chain(self.reads.iter().map(|(_, part)| *part))
    }

    /// Takes the write of a part off.
    pub(super) fn take_put(&mut self, part: usize) -> Option<Put> {
        let at = self.puts.iter().position(|put| put.part == part)?;
        Some(self.puts.remove(at))
    }

    /// Takes the read of a part off.
    pub(super) fn take_read(&mut self, part: usize) -> Option<Arc<LeaderElectionRecord>> {
        let at = self.reads.iter().position(|(_, read)| *read == part)?;
        Some(self.reads.remove(at).0)
    }
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// The locks that the process uses.
    pub(super) phase: Phase,
    pub(super) election: Election,
    /// The process's knowledge of its locks.
    pub(super) view: View,
    /// The job for which the process competes.
    pub(super) job: Option<JobId>,
    /// The call that is in flight.
    pub(super) call: Option<Call>,
    /// The requests that the calls so far have left to the background.
    pub(super) background: Background,
    /// `true` if the process was asked to stop, to begin anew in the next phase.
    pub(super) stops: bool,
}

/// A state of the model.
#[derive(Clone, Debug, Default, Hash)]
pub struct World {
    pub(super) now: u8,
    /// The locks, the old one first.
    pub(super) locks: Vec<Option<Stored>>,
    /// The record of each lock before its last write, if a lock may be restored.
    pub(super) backups: Vec<Option<Stored>>,
    /// `true` if a lock has been restored.
    pub(super) is_restored: bool,
    /// The lock that does not answer.
    pub(super) gone: Option<usize>,
    pub(super) nodes: Vec<Node>,
    /// The writes for whose answers nobody waits, each with its lock.
    pub(super) late: Vec<Late<usize, Put>>,
    /// The faults so far.
    pub(super) faults: u8,
    /// The crashes so far.
    pub(super) crashes: u8,
    /// The records that a hostile writer has forged so far.
    pub(super) forgeries: u8,
    /// The releases by an operator so far.
    pub(super) releases: u8,
    /// The token of the last term that began.
    pub(super) highest: Option<u64>,
    /// The phase of the process that led last.
    pub(super) led: Option<Phase>,
    /// The units since a process led, or since the last event that a gap may follow.
    pub(super) idle: u8,
    /// The first broken promise.
    pub(super) violation: Option<Violation>,
    /// The ids and versions that were used.
    pub(super) ids: Ids,
}

impl Node {
    pub(super) fn new(setup: &Setup, index: usize, phase: Phase) -> Self {
        let mut rules = ElectionConfig::new(
            NAMES[index],
            UNIT * u32::from(setup.leases[index]),
            UNIT * u32::from(setup.deadlines[index]),
            UNIT * u32::from(RETRY),
        );
        (rules.release_on_cancel, rules.reclaim_own_identity) = (true, setup.reclaims);
        rules.store_clock_slack = setup.ages.then_some(Duration::ZERO);
        if setup.takes_back {
            (rules.rank, rules.failback) = (u8::from(index > 0), index == 0);
        }
        let view = View::new(NAMES[index], phase.parts.iter().map(ToString::to_string).collect(), phase.needs);
        let (election, job) = (Election::new(rules), setup.job_id());
        Self { phase, election, view, job, call: None, background: Background::default(), stops: false }
    }
}

impl World {
    pub(super) fn new(setup: &Setup) -> Self {
        let mut ids = Ids::default();
        let mut first = |token: &Option<u64>| {
            let mut record = LeaderElectionRecord::new("", UNIT);
            record.leader_transitions = (*token)?;
            Some(Stored { record: Arc::new(record), version: ids.version(), written: setup.ages.then_some(LONG_AGO) })
        };
        let mut locks: Vec<_> = setup.tokens.iter().map(&mut first).collect();
        if let Some((part, index, token)) = setup.left
            && let Some(lock) = &mut locks[part]
        {
            let record = Arc::make_mut(&mut lock.record);
            (record.holder_identity, record.leader_transitions) = (NAMES[index].to_owned(), token);
            (record.lease_duration, record.write_id) = (UNIT * u32::from(setup.leases[index]), Some(ids.unused()));
        }
        let nodes = (0..setup.phases.len()).map(|index| Node::new(setup, index, setup.phases[index])).collect();
        let backups = if setup.restores.is_some() { locks.clone() } else { Vec::new() };
        let (gone, highest) = (setup.gone, setup.first_token());
        let mut world = Self { locks, backups, gone, nodes, highest, ids, ..Self::default() };
        let last = world.nodes.len() - 1;
        if setup.takes_back {
            world.lead_first(setup, last);
        }
        (0..last).for_each(|index| world.begin(index));
        if !setup.takes_back {
            world.begin(last);
        }
        world
    }

    pub(super) fn moment(&self) -> LocalInstant {
        LocalInstant::default() + UNIT * u32::from(self.now)
    }

    /// The number of processes that lead now.
    pub(super) fn leaders(&self) -> usize {
        let now = self.moment();
        self.nodes.iter().filter(|node| node.election.leading(now).is_some()).count()
    }
}
