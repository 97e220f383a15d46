//! One candidate: the real state machine, and the request it waits for.

use std::time::Duration;

use leaderelection::Version;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{Answer, Election, EndReason, Event, Jitter, Request};

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
    /// Whether the work of a term runs.
    pub(super) working: bool,
    /// The version it read last, and for how long that bars it from beginning a term.
    pub(super) barred: Option<(Version, Duration)>,
    /// Whether the answer that it just got shows a clash of identities.
    clash: bool,
}

impl Node {
    pub(super) fn new(setup: &Setup, index: usize) -> Self {
        let mut election = Election::new(setup.rules(index));
        election.begin(now(setup));
        Self {
            election,
            identity: setup.nodes[index].0,
            flight: None,
            valid: None,
            ended: None,
            working: false,
            barred: None,
            clash: false,
        }
    }

    /// The token of the term this node leads.
    pub fn leading(&self, setup: &Setup) -> Option<u64> {
        self.election.leading(now(setup)).map(|term| term.fencing_token)
    }

    pub(super) fn take_answer(&mut self, setup: &Setup) {
        if let Some(Flight::Answered { answer, clash, .. }) = self.flight.take() {
            self.clash = clash;
            self.answer(setup, answer);
        }
    }

    pub(super) fn answer(&mut self, setup: &Setup, answer: Answer) {
        // Only what is asked for is remembered: every memory multiplies the states.
        if setup.deletion
            && let Answer::Read(Ok(Some(found))) = &answer
            && self.barred.as_ref().is_none_or(|(version, _)| *version != found.version)
        {
            let free = found.record.is_released() || found.record.holder_identity == self.identity;
            let lease = if free { Duration::ZERO } else { found.record.lease_duration };
            self.barred = Some((found.version.clone(), lease));
        }
        self.flight = None;
        self.election.on_answer(now(setup), answer, Jitter::default());
    }

    /// What is wrong with sending this now.
    pub(super) fn may_send(&self, request: &Request) -> Option<Violation> {
        let barred = self.barred.as_ref().is_some_and(|(_, lease)| !lease.is_zero());
        match request {
            Request::Create { .. } if barred => Some(Violation::Haste),
            Request::Update { record, .. } if record.is_released() && self.working => Some(Violation::EarlyRelease),
            _ => None,
        }
    }

    /// Takes what the last call changed, and says what it broke.
    pub(super) fn settle(
        &mut self,
        setup: &Setup,
        started: &mut u64,
        cell: Option<&Cell>,
        index: usize,
    ) -> Option<Violation> {
        let mut violation = None;
        while let Some(event) = self.election.next_event() {
            match event {
                Event::Started { fencing_token } => {
                    let this = 1 << fencing_token;
                    if *started & this != 0 || setup.trusted_clocks && *started > this {
                        violation = Some(Violation::Tokens);
                    }
                    *started |= this;
                    self.working = true;
                }
                Event::Stopped { fencing_token, reason } => {
                    let deposed = matches!(
                        reason,
                        EndReason::TakenOver { .. } | EndReason::Emptied | EndReason::Deleted | EndReason::Unreadable
                    );
                    let still_ours = cell.is_some_and(|cell| {
                        cell.writer == Some(index) && cell.record.leader_transitions == fencing_token
                    });
                    if deposed && still_ours {
                        violation = Some(Violation::SpuriousLoss);
                    }
                }
                Event::IdentityClash if !self.clash => violation = Some(Violation::FalseClash),
                _ => {}
            }
        }
        self.clash = false;
        violation.or_else(|| self.look(setup))
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
}

pub(super) fn now(setup: &Setup) -> LocalInstant {
    LocalInstant::default() + Duration::from_nanos(setup.now())
}
