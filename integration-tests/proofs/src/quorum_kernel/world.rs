//! The state of all candidates, of the parts, and of the puts in flight.

use std::collections::BTreeMap;
use std::sync::Arc;

use leaderelection_protocol::lease::Lease;
use leaderelection_protocol::quorum::{Plan, Put, Quorum};

use super::half::{Half, TheJob, Version, WriteId};
use super::setup::Setup;
use crate::kernel::Id;
use crate::kit::promises;

promises! {
    /// A term began whose token is not larger than that of every earlier term.
    Tokens = "tokens rise",
    /// A write was committed in enough parts while another candidate led.
    Erasure = "no erasure",
    /// A term for the job began after its mark was committed, or the mark was committed after a later term had begun.
    Repetition = "the job is done once",
    /// A write without the mark was committed in enough parts after the mark had.
    LostMark = "no lost mark",
    /// A part got a token below its last one.
    Regress = "no token goes back",
}

/// A part with an object.
#[derive(Clone, Debug, Hash)]
pub(super) struct Cell {
    pub(super) record: Arc<Half>,
    pub(super) version: Version,
    /// Its age; 0 if no read tells it.
    pub(super) age: u64,
}

/// The request of a lease that is in flight.
#[derive(Clone, Debug, Hash)]
pub(super) enum Call {
    Poll(BTreeMap<usize, Option<Cell>>),
    Write(Box<Plan<Half>>),
}

/// The requests that calls have left to the background. A write of the same term ends none of them.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Background {
    /// Of writes that are committed, or those that roll back what a write has taken.
    pub(super) puts: Vec<Put<Half>>,
    /// The parts, each with the write that has found its version unknown.
    pub(super) reads: Vec<(Arc<Half>, usize)>,
}

/// A candidate.
#[derive(Clone, Debug, Hash)]
pub(super) struct Node {
    pub(super) lease: Lease<Half>,
    pub(super) quorum: Quorum<Half>,
    pub(super) call: Option<Call>,
    pub(super) background: Background,
}

/// A put for whose answer nobody waits.
#[derive(Clone, Debug, Hash)]
pub(super) struct Late {
    /// `None` if the candidate has crashed since.
    pub(super) writer: Option<usize>,
    pub(super) put: Put<Half>,
}

/// A state.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) parts: Vec<Option<Cell>>,
    pub(super) late: Vec<Late>,
    pub(super) faults: u8,
    pub(super) crashes: u8,
    /// The number of writes that have begun, if it is bounded.
    pub(super) writes: u8,
    pub(super) forgeries: u8,
    /// The number of requests that have begun.
    pub(super) requests: u8,
    /// The tokens of all terms that have begun, as a set of bits.
    pub(super) started: u64,
    /// `true` after a record with the mark is committed in enough parts.
    pub(super) is_marked: bool,
    pub(super) violation: Option<Violation>,
    /// No part of the state: `true` if each step of the beginning was possible.
    pub(super) has_begun: bool,
    /// No part of the state: the number of ids that were used.
    pub(super) ids: usize,
}

impl Node {
    pub(super) fn new(setup: &Setup, index: usize) -> Self {
        let mut lease = Lease::new(Id::of(index), setup.limits(), setup.crashes > 0);
        lease.begin(setup.now(), setup.has_job(index).then_some(TheJob));
        while lease.next_effect().is_some() {}
        // The kernel needs the smallest majority, whatever is given.
        let needed = if setup.needed == setup.parts / 2 + 1 { 1 } else { setup.needed };
        let quorum = Quorum::new(Id::of(index), (), setup.parts, needed);
        Self { lease, quorum, call: None, background: Background::default() }
    }

    pub(super) fn leads(&self, setup: &Setup) -> bool {
        self.lease.term(setup.now()).is_some()
    }

    /// Returns `true` if nothing that this candidate has written may give it leadership yet.
    pub(super) fn is_done(&self) -> bool {
        self.call.is_none() && self.lease.unanswered().next().is_none()
    }

    /// The records that this candidate has read or may yet write.
    fn records(&self) -> impl Iterator<Item = &Arc<Half>> {
        let (polled, plan) = match &self.call {
            Some(Call::Poll(polled)) => (Some(polled), None),
            Some(Call::Write(plan)) => (None, Some(plan.record())),
            None => (None, None),
        };
        let read = polled.into_iter().flat_map(|polled| polled.values().flatten().map(|cell| &cell.record));
        read.chain(plan)
            .chain(self.background.puts.iter().map(Put::record))
            .chain(self.background.reads.iter().map(|(record, _)| record))
    }
}

impl World {
    pub(super) fn new(setup: &Setup) -> Self {
        let nodes: Vec<_> = (0..setup.rates.len()).map(|index| Node::new(setup, index)).collect();
        // The one after the candidates is that of a hostile writer.
        let ids = nodes.len() + 1;
        let released = (1..).zip(&setup.tokens).map(|(at, token)| Cell::released(Id::of(ids + at), *token));
        let mut parts: Vec<Option<Cell>> = released.map(Some).collect();
        parts.resize(setup.parts, None);
        Self {
            ids: ids + setup.tokens.len(),
            nodes,
            parts,
            late: Vec::new(),
            faults: 0,
            crashes: 0,
            writes: 0,
            forgeries: 0,
            requests: 0,
            started: 0,
            is_marked: false,
            violation: None,
            has_begun: false,
        }
    }

    pub(super) fn unused(&mut self) -> Id {
        self.ids += 1;
        Id::of(self.ids)
    }

    pub(super) fn leaders(&self, setup: &Setup) -> usize {
        self.nodes.iter().filter(|node| node.leads(setup)).count()
    }

    /// Returns `true` if another write may begin.
    pub(super) fn may_write(&self, setup: &Setup) -> bool {
        setup.writes.is_none_or(|most| self.writes < most)
    }

    pub(super) fn violate(&mut self, violation: Option<Violation>) {
        self.violation = self.violation.or(violation);
    }

    /// Returns `true` if a put replaces what its part is now.
    pub(super) fn fits(&self, put: &Put<Half>) -> bool {
        self.parts[put.part()].as_ref().map(|cell| &cell.version) == put.expected()
    }

    /// The number of parts that show what this is true of.
    pub(super) fn showing(&self, is_shown: impl Fn(&Half) -> bool) -> usize {
        self.parts.iter().flatten().filter(|cell| is_shown(&cell.record)).count()
    }

    /// All ids of writes that a poll may still show.
    pub(super) fn readable(&self) -> Vec<WriteId> {
        let cells = self.parts.iter().flatten().map(|cell| &cell.record);
        let late = self.late.iter().map(|late| late.put.record());
        let all = cells.chain(late).chain(self.nodes.iter().flat_map(Node::records));
        all.filter_map(|record| record.write_id.clone()).collect()
    }
}
