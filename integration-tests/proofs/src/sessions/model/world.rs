//! The state of all processes, of the objects, and of the network.

use std::collections::BTreeMap;

use leaderelection::sessions::machine::SessionId;

use super::node::{Ask, Node, Reply, Target};
use super::promise::Violation;
use super::setup::Setup;
use crate::kit::{Cell, Ids, Net};

/// All nodes and objects, and the writes that are on their way although their senders no longer wait.
#[derive(Clone, Debug, Hash)]
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) sessions: BTreeMap<SessionId, Cell>,
    pub(super) locks: Vec<Option<Cell>>,
    pub(super) net: Net<Target, Ask, Reply>,
    /// The tokens of all terms of each lock that have begun, as sets of bits.
    pub(super) started: Vec<u64>,
    pub(super) violation: Option<Violation>,
    pub(super) deleted: bool,
    pub(super) ids: Ids,
}

impl World {
    /// Creates a state in which no node competes so far.
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            nodes: (0..setup.nodes.len()).map(|index| Node::new(setup, index, 0)).collect(),
            net: Net::new(setup.nodes.len()),
            sessions: BTreeMap::new(),
            locks: vec![None; setup.locks],
            started: vec![0; setup.locks],
            violation: None,
            deleted: false,
            ids: Ids::default(),
        }
    }

    /// Returns the number of nodes that lead a lock at this moment, each by its own clock.
    pub fn leaders(&self, setup: &Setup, lock: usize) -> usize {
        self.nodes.iter().filter(|node| node.leading(setup, lock).is_some()).count()
    }
}
