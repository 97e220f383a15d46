//! The state of all candidates, of the object, and of the network.

use leaderelection_protocol::lease::{Lease, ReadError, Write};
use leaderelection_protocol::record::Versioned;

use super::setup::Setup;
use super::tiny::{Id, TheJob, Tiny};
use crate::kit::{Flight, Net, Seat, Work};
use crate::model::Violation;

/// A request.
#[derive(Clone, Debug, Hash)]
pub(super) enum Request {
    Read,
    Write(Write<Tiny>),
}

/// The answer of the store.
#[derive(Clone, Debug, Hash)]
pub(super) enum Answer {
    /// The object, and the time for which it has existed for certain.
    Read(Result<Option<Versioned<Tiny>>, ReadError>, u64),
    /// The version that a write has made; `None` if it was refused.
    Written(Option<Id>),
}

/// A candidate.
#[derive(Clone, Debug, Hash)]
pub(super) struct Node {
    pub(super) lease: Lease<Tiny>,
    pub(super) seat: Seat,
    /// `true` while the candidate has the other timings.
    pub(super) is_retimed: bool,
    /// `true` if the work of the last term has succeeded.
    pub(super) has_succeeded: bool,
    /// `true` after the candidate has stopped competing while it might hold the lease.
    pub(super) has_withdrawn: bool,
    /// The time for which the record that the candidate has read blocks it, in a setup with a deletion.
    pub(super) blocked: u64,
}

/// The object.
#[derive(Clone, Debug, Hash)]
pub(super) struct Cell {
    pub(super) found: Versioned<Tiny>,
    /// The candidate that wrote the record; `None` if it has crashed since.
    pub(super) writer: Option<usize>,
    /// The time since the last write by the store's clock.
    pub(super) age: u64,
}

/// The state of a record that is replaced once by something that is none, and put back later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spoilt {
    NotYet,
    Now,
    Over,
}

/// A situation that the last step has shown, and the state does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scene {
    LateWrite,
    OwnLateWrite,
    Requested,
    Released,
}

/// A state.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) cell: Option<Cell>,
    pub(super) net: Net<(), Request, Answer>,
    /// The tokens of all terms that have begun, as a set of bits.
    pub(super) started: u64,
    /// `true` after a record with the mark is committed.
    pub(super) is_marked: bool,
    pub(super) is_deleted: bool,
    pub(super) requests: u8,
    pub(super) reconfigures: u8,
    pub(super) spoilt: Spoilt,
    /// The rest of the window of an elector of another library, which holds the lease from the start.
    pub(super) foreign: u64,
    pub(super) violation: Option<Violation>,
    /// The situation of the last step.
    pub(super) scene: Option<Scene>,
    /// No part of the state: the number of ids that were used.
    pub(super) ids: u16,
}

impl Node {
    pub(super) fn new(setup: &Setup, index: usize) -> Self {
        let me = Id(if setup.shared { 0 } else { u16::try_from(index).expect("few candidates") });
        let mut lease = Lease::new(me, setup.limits(index, false), setup.reclaims);
        lease.begin(setup.now(), setup.has_job(index).then_some(TheJob));
        Self { lease, seat: Seat::default(), is_retimed: false, has_succeeded: false, has_withdrawn: false, blocked: 0 }
    }

    /// The token of the term that is valid.
    pub(super) fn leading(&self, setup: &Setup) -> Option<u64> {
        self.lease.term(setup.now()).map(|term| term.token())
    }

    pub(super) fn has_work(&self) -> bool {
        self.seat.work != Work::None
    }
}

impl World {
    pub(super) fn new(setup: &Setup) -> Self {
        let nodes: Vec<_> = (0..setup.rates.len()).map(|index| Node::new(setup, index)).collect();
        Self {
            net: Net::new(nodes.len()),
            ids: u16::try_from(nodes.len()).expect("few candidates"),
            nodes,
            cell: None,
            started: 0,
            is_marked: false,
            is_deleted: false,
            requests: 0,
            reconfigures: 0,
            spoilt: Spoilt::NotYet,
            foreign: 0,
            violation: None,
            scene: None,
        }
    }

    pub(super) fn unused(&mut self) -> Id {
        self.ids += 1;
        Id(self.ids)
    }

    pub(super) fn leaders(&self, setup: &Setup) -> usize {
        self.nodes.iter().filter(|node| node.leading(setup).is_some()).count()
    }

    pub(super) fn violate(&mut self, violation: Option<Violation>) {
        self.violation = self.violation.or(violation);
    }

    /// Returns `true` if the write replaces what the object is now.
    pub(super) fn fits(&self, write: &Write<Tiny>) -> bool {
        self.cell.as_ref().map(|cell| &cell.found.version) == write.expected()
    }

    /// All ids of writes that a read may still show.
    pub(super) fn readable(&self) -> Vec<Id> {
        let of_request = |request: &Request| match request {
            Request::Write(write) => write.record().write_id,
            Request::Read => None,
        };
        let flights = self.net.flights().filter_map(|flight| match flight {
            Flight::Sent(request) => of_request(request),
            Flight::Answered(Answer::Read(Ok(Some(found)), _)) => found.record.write_id,
            Flight::Answered(_) => None,
        });
        let late = self.net.late.iter().filter_map(|late| of_request(&late.request));
        self.cell.iter().filter_map(|cell| cell.found.record.write_id).chain(flights).chain(late).collect()
    }
}
