//! One candidate: the real state machine, and the request it waits for.

use std::time::Duration;

use chrono::DateTime;
use leaderelection::Version;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{
    Answer, ClashWatch, Draw, Election, EndReason, Fact, Jitter, Purpose, Request, Stamp, Write,
};

use super::world::{Cell, Setup, Violation};

/// A candidate's request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Flight {
    /// On its way to the store.
    Sent(Request),
    /// Done; the answer is on its way back.
    Answered {
        /// What the store says.
        answer: Answer,
        /// Whether it was a write that was applied.
        applied: bool,
        /// Whether it was a read of what another process wrote under the reader's identity.
        clash: bool,
    },
}

/// The work of a candidate's term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// There is none.
    None,
    /// The term has started, and its work was not polled yet.
    Pending,
    /// It runs.
    Running,
    /// It was told to be dropped, and still runs.
    Dropped,
    /// Nobody waits for it any more. It still runs.
    Abandoned,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub(super) election: Election,
    pub(super) identity: &'static str,
    pub(super) flight: Option<Flight>,
    /// The term that was valid when this node was last looked at.
    pub(super) valid: Option<u64>,
    /// The last term of this process that has ended.
    pub(super) ended: Option<u64>,
    pub(super) work: Work,
    /// Whether the term was started and not stopped, as the driver was told.
    pub(super) leads: bool,
    /// Whether the driver is to be told at once that the work has ended.
    pub(super) ends_now: bool,
    /// When the lease of the last term runs out, as far as it was told; while there is work.
    pub(super) lease_end: Option<LocalInstant>,
    /// Whether it was asked to stop, so that this candidacy must not win another term.
    pub(super) stop_asked: bool,
    /// Whether the candidacy is over, and the next one waits for abandoned work.
    pub(super) waits: bool,
    /// The watch over the identity, where it is shared.
    pub(super) clash_watch: Option<ClashWatch>,
    /// The version it read last, and for how long that bars it from beginning a term.
    pub(super) barred: Option<(Version, Duration)>,
}

/// A source without chance: the ids are the explorer's.
pub(super) struct Ids(pub(super) String);

impl Draw for Ids {
    fn jitter(&mut self) -> Jitter {
        Jitter::default()
    }

    fn stamp(&mut self) -> Stamp {
        Stamp { write_id: self.0.clone(), time: DateTime::UNIX_EPOCH }
    }
}

impl Node {
    /// A candidate that does not compete yet.
    pub(super) fn new(setup: &Setup, index: usize) -> Self {
        let identity = setup.nodes[index].0;
        let is_shared = setup.nodes.iter().filter(|(other, _)| *other == identity).count() > 1 || setup.crashes;
        Self {
            election: Election::new(setup.rules(index)),
            identity,
            flight: None,
            valid: None,
            ended: None,
            work: Work::None,
            leads: false,
            ends_now: false,
            lease_end: None,
            stop_asked: false,
            waits: false,
            clash_watch: is_shared.then(|| ClashWatch::new(identity)),
            barred: None,
        }
    }

    /// The token of the term this node leads.
    pub fn leading(&self, setup: &Setup) -> Option<u64> {
        self.election.leading(now(setup)).map(|term| term.fencing_token)
    }

    /// Whether work of this node runs.
    pub(super) fn works(&self) -> bool {
        matches!(self.work, Work::Running | Work::Dropped | Work::Abandoned)
    }

    /// Remembers what an answer shows. Only what is asked for is remembered: every memory multiplies the states.
    pub(super) fn see(&mut self, setup: &Setup, answer: &Answer) {
        if setup.deletion
            && let Answer::Read(Ok(Some(found))) = answer
            && self.barred.as_ref().is_none_or(|(version, _)| *version != found.version)
        {
            let free = found.record.is_released() || found.record.holder_identity == self.identity;
            let lease = if free { Duration::ZERO } else { found.record.lease_duration };
            self.barred = Some((found.version.clone(), lease));
        }
    }

    /// What is wrong with sending this now.
    pub(super) fn may_send(&self, request: &Request) -> Option<Violation> {
        let barred = self.barred.as_ref().is_some_and(|(_, lease)| !lease.is_zero());
        match request {
            Request::Write(Write { expected: None, .. }) if barred => Some(Violation::Haste),
            Request::Write(Write { purpose: Purpose::Acquire, .. }) if self.stop_asked => Some(Violation::Disobedience),
            Request::Write(Write { record, .. }) if record.is_released() && self.works() => {
                Some(Violation::EarlyRelease)
            }
            _ => None,
        }
    }

    /// What is wrong with the fact that the driver was told; `clash` if the last read showed a clash of identities.
    pub(super) fn hear(&mut self, fact: &Fact, clash: bool) -> Option<Violation> {
        match fact {
            Fact::LeaderChanged { leader } if self.leads && leader.as_deref() != Some(self.identity) => {
                Some(Violation::Order)
            }
            Fact::Observed => {
                let observed = self.election.observed();
                // Where a read shows no other process' write, it shows one of this process.
                let reported = self.clash_watch.as_mut().is_some_and(|watch| watch.saw(observed, |_| !clash));
                (reported && !clash).then_some(Violation::FalseClash)
            }
            _ => None,
        }
    }

    /// What is wrong with the end of a term for this reason.
    pub(super) fn stops(&self, token: u64, reason: &EndReason, cell: Option<&Cell>, index: usize) -> Option<Violation> {
        let deposed = matches!(
            reason,
            EndReason::TakenOver { .. } | EndReason::Emptied | EndReason::Deleted | EndReason::Unreadable
        );
        let still_ours = cell.is_some_and(|cell| cell.writer == Some(index) && cell.record.leader_transitions == token);
        (deposed && still_ours).then_some(Violation::SpuriousLoss)
    }

    /// Whether the term with this token is one of this process that has begun.
    pub(super) fn has_begun(&self, token: u64) -> bool {
        self.valid.max(self.ended) >= Some(token)
    }

    /// Compares what is valid now with what was.
    pub(super) fn look(&mut self, setup: &Setup) -> Option<Violation> {
        let valid = self.leading(setup);
        if self.valid != valid {
            self.ended = self.ended.max(self.valid);
            self.valid = valid;
        }
        (valid.is_some() && valid <= self.ended).then_some(Violation::Revival)
    }

    /// What is wrong after a step of the machine: work of an ended lease that was not dropped.
    pub(super) fn after_step(&self, setup: &Setup) -> Option<Violation> {
        let overruns = self.work == Work::Running && self.lease_end.is_some_and(|end| now(setup) >= end);
        overruns.then_some(Violation::Overrun)
    }
}

pub(super) fn now(setup: &Setup) -> LocalInstant {
    LocalInstant::default() + Duration::from_nanos(setup.now())
}
