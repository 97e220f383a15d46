//! The state of all nodes, of the object, and of the network.

use leaderelection::election::Request;

use super::node::{Answered, Node};
use super::promise::Violation;
use super::setup::Setup;
use crate::kit::{Cell, Ids, Net};

/// The state of a record that is replaced once by something that is none, and put back later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spoilt {
    /// The record was not replaced yet.
    NotYet,
    /// The object cannot be read.
    Now,
    /// The record is back, with its version, as on a store whose versions are a hash of the content.
    Over,
}

/// All nodes, the object, and the writes that are in flight although their senders no longer wait.
#[derive(Clone, Debug, Hash)]
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) cell: Option<Cell>,
    pub(super) net: Net<(), Request, Answered>,
    /// The tokens of all terms that have begun, as a set of bits.
    pub(super) started: u64,
    pub(super) job: Progress,
    pub(super) violation: Option<Violation>,
    pub(super) deleted: bool,
    /// The number of requests of an operator.
    pub(super) transferred: usize,
    /// The number of times that a node got other timings.
    pub(super) reconfigured: usize,
    /// The number of messages of peers that have counted.
    pub(super) messages: usize,
    /// The state of the record that is replaced once by something that is none.
    pub(super) spoilt: Spoilt,
    pub(super) ids: Ids,
}

/// The knowledge about the job of a setup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    /// The tokens of the terms whose work has succeeded, as a set of bits.
    pub(super) succeeded: u64,
    /// `true` after a record with the mark is committed.
    pub(super) marked: bool,
}

impl Progress {
    pub(super) fn has_succeeded(&self, token: u64) -> bool {
        self.succeeded & 1 << token != 0
    }
}

impl World {
    /// Creates a state in which no node competes so far.
    pub(super) fn new(setup: &Setup) -> Self {
        let nodes: Vec<_> = (0..setup.nodes.len()).map(|index| Node::new(setup, index)).collect();
        Self {
            net: Net::new(nodes.len()),
            nodes,
            cell: None,
            started: 0,
            job: Progress::default(),
            violation: None,
            deleted: false,
            transferred: 0,
            reconfigured: 0,
            messages: 0,
            spoilt: Spoilt::NotYet,
            ids: Ids::default(),
        }
    }

    /// Returns the number of nodes that lead at this moment, each by its own clock.
    pub fn leaders(&self, setup: &Setup) -> usize {
        self.nodes.iter().filter(|node| node.leading(setup).is_some()).count()
    }

    /// Records a broken promise, if the setup checks more than exclusion.
    pub(super) fn violate(&mut self, setup: &Setup, violation: Option<Violation>) {
        if !setup.only_exclusion {
            self.violation = self.violation.or(violation);
        }
    }
}
