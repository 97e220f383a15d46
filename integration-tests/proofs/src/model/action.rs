//! The steps that are possible from a state.

use leaderelection::StoreErrorKind::{self, Ambiguous, Conflict, Rejected};

use super::node::Answered;
use super::peer::Message;
use super::setup::Setup;
use super::world::{Spoilt, World};
use crate::kit::{Flight, Work};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Asks the leader to hand over to a node, as an operator can.
    RequestTransfer(usize),
    /// Lets an event happen to a node.
    Node(usize, Deed),
}

/// An event that happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// The node reads its clock and does what is due.
    Poll,
    /// The node's request reaches the store.
    Arrive,
    /// The node gets the answer.
    Answer,
    /// The answer is an error, which may ask the node to wait. A request whose outcome is left open may still arrive.
    Error(StoreErrorKind, Wait),
    /// The node is asked to end its term or its candidacy.
    Stop,
    /// The node is asked to step down.
    StepDown,
    /// The work of the node's term is polled for the first time.
    BeginWork,
    /// The work of the node's term has ended, after the term itself.
    WorkStopped,
    /// The work of the node's term, a job, has succeeded.
    Succeed,
    /// The work of the node's term has failed.
    Fail,
    /// The node competes again for a job that it has found done.
    CompeteAgain,
    /// The node crashes and starts again with the same identity.
    Crash,
    /// The node gets the other timings of the setup, or its first timings again.
    Reconfigure,
    /// The node gets a message from a peer, which may be a lie.
    Message(Message),
}

/// The time for which an answer asks a node to send nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// None.
    No,
    /// A lease duration.
    Lease,
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        for (index, node) in self.nodes.iter().enumerate() {
            let mut push = |deed| actions.push(Action::Node(index, deed));
            push(Deed::Poll);
            match self.net.get(index, &()) {
                None => {}
                // The node no longer waits for the answer, or the store refused the request before it had any effect.
                Some(Flight::Sent(_)) => {
                    [Deed::Arrive, Deed::Error(Ambiguous, Wait::No), Deed::Error(Rejected, Wait::No)]
                        .into_iter()
                        .for_each(&mut push);
                    setup.waits.then(|| push(Deed::Error(Rejected, Wait::Lease)));
                }
                Some(Flight::Answered(Answered { applied, .. })) => {
                    [Deed::Answer, Deed::Error(Ambiguous, Wait::No)].into_iter().for_each(&mut push);
                    setup.waits.then(|| push(Deed::Error(Ambiguous, Wait::Lease)));
                    // A conflict after the write was applied, as after a second try of an SDK or a proxy, or a refusal.
                    if *applied && setup.lies {
                        [Conflict, Rejected].into_iter().for_each(|kind| push(Deed::Error(kind, Wait::No)));
                    }
                }
            }
            match node.seat.work {
                Work::None => {}
                Work::Pending => push(Deed::BeginWork),
                Work::Running | Work::Dropped | Work::Abandoned if setup.has_job(index) => {
                    [Deed::Succeed, Deed::Fail].into_iter().for_each(&mut push);
                }
                Work::Running if node.seat.leads && setup.fails => push(Deed::Fail),
                Work::Running if node.seat.leads => {}
                Work::Running | Work::Dropped | Work::Abandoned => push(Deed::WorkStopped),
            }
            if node.rests {
                push(Deed::CompeteAgain);
            }
            if setup.stops && !node.waits {
                push(Deed::Stop);
            }
            if setup.stops && node.seat.leads {
                push(Deed::StepDown);
            }
            if self.reconfigured < setup.reconfigures {
                push(Deed::Reconfigure);
            }
            if setup.crashes {
                push(Deed::Crash);
            }
            self.possible_messages(setup, index).for_each(|kind| push(Deed::Message(kind)));
        }
        actions.extend((0..self.net.late.len()).map(Action::ArriveLate));
        if setup.deletion && !self.deleted && self.cell.is_some() {
            actions.push(Action::Delete);
        }
        if setup.spoils && self.spoilt == Spoilt::NotYet && self.cell.is_some() {
            actions.push(Action::Spoil);
        }
        if self.spoilt == Spoilt::Now {
            actions.push(Action::Repair);
        }
        if self.transferred < setup.transfers && self.cell.is_some() && self.spoilt != Spoilt::Now {
            actions.extend((0..self.nodes.len()).map(Action::RequestTransfer));
        }
    }
}
