//! The canonical form of a state: the ages that matter, of those that a step of the clocks changes, and mirror images, which are
//! states of alike candidates that differ only in which candidate is which.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use leaderelection::election::{Answer, Request, Visitor};

use super::node::{Answered, Node};
use super::peer;
use super::setup::Setup;
use super::world::World;
use crate::kit::{Ages, Cell, Flight, least_image, orders, shift};

impl World {
    /// Lets a step of time pass. The readings of the clocks stay, and all remembered moments move into the past.
    pub(super) fn advance(&mut self, setup: &Setup) {
        if let (Some(cell), Some(clock)) = (&mut self.cell, setup.store_clock) {
            // A greater age makes no difference.
            cell.age = (cell.age + clock.rate).min(setup.longest_lease() + clock.slack);
        }
        for (node, (_, rate)) in self.nodes.iter_mut().zip(&setup.nodes) {
            let passed = Duration::from_nanos(*rate);
            node.election.visit(&mut shift(passed));
            if let Some(lease_end) = &mut node.lease_end {
                shift(passed).timer(lease_end);
            }
            if setup.takes_back && node.identity == setup.nodes[0].0 {
                node.well = (node.well + passed).min(Duration::from_nanos(setup.longest_memory()));
            }
            node.silent = node.silent.saturating_sub(passed);
            if let Some((_, lease)) = &mut node.blocked {
                *lease = lease.saturating_sub(passed);
            }
        }
    }

    /// Rounds the ages that are too great to matter, and forgets the writes that nothing shows any more.
    pub(super) fn canonical(&mut self, setup: &Setup) {
        let flights = self.net.flights().filter_map(|flight| match flight {
            Flight::Sent(Request::Write(write)) => Some(&*write.record),
            Flight::Answered(Answered { answer: Answer::Read(Ok(Some(found))), .. }) => Some(&found.record),
            _ => None,
        });
        let late = self.net.late.iter().filter_map(|late| match &late.request {
            Request::Write(write) => Some(&*write.record),
            Request::Read => None,
        });
        let readable = flights.chain(self.cell.iter().map(|cell| &*cell.record)).chain(late);
        let live_writes: Vec<&str> = readable.filter_map(|record| record.write_id.as_deref()).collect();
        let oldest = Duration::from_nanos(setup.longest_memory());
        let mut ages =
            Ages { now: setup.now(), oldest, longest_pause: None, number: peer::LAST, live_writes: &live_writes };
        for node in &mut self.nodes {
            node.election.visit(&mut ages);
            if let Some(lease_end) = &mut node.lease_end {
                ages.timer(lease_end);
            }
        }
        self.net.sort();
    }
}

impl Setup {
    /// Returns `true` if states that differ only in which node is which are the same.
    fn is_alike(&self) -> bool {
        self.nodes.iter().all(|(_, rate)| *rate == self.nodes[0].1)
            && self.other_lease.is_none_or(|lease| lease == self.lease)
            && !self.has_ranks()
            && [0, self.nodes.len()].contains(&self.jobs)
    }

    /// One number for all mirror images of a state.
    pub(super) fn least_image(&self, world: &World) -> u64 {
        let orders = orders(self.nodes.len(), self.is_alike());
        least_image(orders, |node| world.sketch(node), |order| Image { world, order })
    }
}

impl World {
    /// A part of what is known of a node, which is the same in each mirror image.
    fn sketch(&self, node: usize) -> impl PartialOrd + use<> {
        let is_writer = self.cell.as_ref().is_some_and(|cell| cell.writer == Some(node));
        let flight = self.net.get(node, &()).map(|flight| matches!(flight, Flight::Sent(_)));
        let Node { election, seat, lease_end, .. } = &self.nodes[node];
        (election.wake_at(), *lease_end, seat.leads, is_writer, flight, election.listens())
    }
}

struct Image<'a> {
    world: &'a World,
    order: &'a [usize],
}

impl Image<'_> {
    fn place_of(&self, node: Option<usize>) -> Option<usize> {
        self.order.iter().position(|at| Some(*at) == node)
    }
}

impl Hash for Image<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // A field that is forgotten here would make one state of two.
        let World {
            nodes,
            net,
            cell,
            started,
            job,
            violation,
            deleted,
            transferred,
            reconfigured,
            messages,
            spoilt,
            ids: _,
        } = self.world;
        if let Some(Cell { record, version, writer, age }) = cell {
            (record, version, self.place_of(*writer), age).hash(state);
        }
        for node in self.order {
            (&nodes[*node], net.of(*node)).hash(state);
        }
        for late in &net.late {
            (self.place_of(late.sender), &late.request).hash(state);
        }
        (started, job, violation, deleted, transferred, reconfigured, messages, spoilt).hash(state);
        (cell.is_some(), net.late.len()).hash(state);
    }
}
