//! The steps that are possible from a state: whatever a policy may do, whatever the network does, and time.

use super::setup::Setup;
use super::tiny::Id;
use super::world::{Answer, Request, Spoilt, World};
use crate::kit::Flight;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Advances all clocks, each by its rate.
    Tick,
    /// Delivers a write whose sender no longer waits for the answer.
    ArriveLate(usize),
    /// Deletes the object, as an operator can.
    Delete,
    /// Replaces the record by something that is none.
    Spoil,
    /// Puts the record back.
    Repair,
    /// Asks the leader to hand over to a candidate, as an operator can.
    Ask(usize),
    /// The elector of another library creates its record, or renews it.
    Foreign,
    /// Lets something happen to a candidate.
    Node(usize, Deed),
}

/// One step of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The candidate reads its clock.
    Poll,
    /// The policy reads.
    Read,
    /// The policy uses a permit to acquire.
    Acquire,
    /// The policy uses a permit to renew.
    Renew,
    /// The policy uses a permit to release.
    Release,
    /// The policy uses a permit to ask for the lease.
    Request,
    /// The request reaches the store.
    Arrive,
    /// The answer reaches the candidate.
    Answer,
    /// The answer reaches the candidate, and the policy ends the term before the driver has carried out what that means.
    AnswerAndEnd,
    /// The candidate gets an error. The write may still arrive later.
    Lost,
    /// The candidate gets an error. The write does not arrive later.
    Refused,
    /// The policy ends the term, and may name the next leader.
    EndTerm,
    /// The policy stops competing.
    Withdraw,
    /// The policy gives the lease up.
    GiveUp,
    /// The work has ended, with or without success.
    WorkEnds(bool),
    /// The process crashes, and starts again.
    Crash,
    /// The driver starts again, with the same lease.
    Begin,
    /// A peer names a write.
    Hint(Id),
    /// The candidate gets its other timings.
    Reconfigure,
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        actions.extend((0..self.net.late.len()).map(Action::ArriveLate));
        if setup.deletion && !self.is_deleted && self.cell.is_some() {
            actions.push(Action::Delete);
        }
        match self.spoilt {
            Spoilt::NotYet if setup.spoils && self.cell.is_some() => actions.push(Action::Spoil),
            Spoilt::Now => actions.push(Action::Repair),
            _ => {}
        }
        if setup.foreign && self.cell.as_ref().is_none_or(|cell| cell.found.record.write_id.is_none()) {
            actions.push(Action::Foreign);
        }
        let may_ask = self.requests < setup.requests;
        if may_ask && self.cell.is_some() && self.spoilt != Spoilt::Now {
            actions.extend((0..self.nodes.len()).map(Action::Ask));
        }
        let named = if setup.hints { self.nameable() } else { Vec::new() };
        for (index, node) in self.nodes.iter().enumerate() {
            let mut push = |deeds: &[Deed]| actions.extend(deeds.iter().map(|deed| Action::Node(index, *deed)));
            push(&[Deed::Poll, Deed::GiveUp]);
            match self.net.get(index, &()) {
                None => push(&[Deed::Read, Deed::Acquire, Deed::Renew, Deed::Release]),
                Some(Flight::Sent(Request::Read)) => push(&[Deed::Arrive, Deed::Lost]),
                Some(Flight::Sent(Request::Write(_))) => push(&[Deed::Arrive, Deed::Lost, Deed::Refused]),
                Some(Flight::Answered(Answer::Written(Some(_)))) if setup.lies => {
                    push(&[Deed::Answer, Deed::Lost, Deed::Refused]);
                }
                Some(Flight::Answered(_)) => push(&[Deed::Answer, Deed::Lost]),
            }
            if may_ask && self.net.get(index, &()).is_none() {
                push(&[Deed::Request]);
            }
            if setup.stops {
                push(&[Deed::EndTerm, Deed::Withdraw]);
            }
            if setup.stops_at_once && matches!(self.net.get(index, &()), Some(Flight::Answered(_))) {
                push(&[Deed::AnswerAndEnd]);
            }
            if node.has_work() && setup.has_job(index) {
                push(&[Deed::WorkEnds(false), Deed::WorkEnds(true)]);
            } else if node.has_work() && setup.late_work {
                push(&[Deed::WorkEnds(false)]);
            }
            if setup.crashes {
                push(&[Deed::Crash]);
            }
            if setup.restarts {
                push(&[Deed::Begin]);
            }
            if self.reconfigures < setup.reconfigures {
                push(&[Deed::Reconfigure]);
            }
            named.iter().for_each(|id| push(&[Deed::Hint(*id)]));
        }
    }

    /// The ids that anybody may name: those of all writes that were sent and are not forgotten.
    fn nameable(&self) -> Vec<Id> {
        let mut ids: Vec<u16> = self.readable().into_iter().map(|id| id.0).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().map(Id).collect()
    }
}
