//! The canonical form of a state: the ages that matter, and mirror images.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection_protocol::lease::Visitor;

use super::half::{Half, WriteId};
use super::setup::Setup;
use super::world::{Late, Node, World};
use crate::kit::{least_image, orders};

/// Moves all moments into the past.
struct Shift(Duration);

impl Visitor<Half> for Shift {
    fn timer(&mut self, at: &mut LocalInstant) {
        *at = *at - self.0;
    }

    fn moment(&mut self, at: &mut LocalInstant) {
        *at = *at - self.0;
    }

    fn may_commit(&mut self, _: &WriteId) -> bool {
        true
    }
}

/// Rounds ages that are too great to matter, and forgets writes that no poll will show.
struct Round<'a> {
    now: LocalInstant,
    oldest: LocalInstant,
    readable: &'a [WriteId],
}

impl Visitor<Half> for Round<'_> {
    fn timer(&mut self, at: &mut LocalInstant) {
        *at = (*at).max(self.now);
    }

    fn moment(&mut self, at: &mut LocalInstant) {
        *at = (*at).max(self.oldest);
    }

    fn may_commit(&mut self, id: &WriteId) -> bool {
        self.readable.contains(id)
    }
}

impl World {
    /// Lets a step of time pass.
    pub(super) fn advance(&mut self, setup: &Setup) {
        for (node, rate) in self.nodes.iter_mut().zip(&setup.rates) {
            node.lease.visit(&mut Shift(Duration::from_nanos(*rate)));
        }
        for cell in self.parts.iter_mut().flatten().filter(|_| setup.ages) {
            // The store's clock is a good one.
            cell.age = (cell.age + 1).min(setup.lease);
        }
    }

    pub(super) fn canonical(&mut self, setup: &Setup) {
        let mut late = std::mem::take(&mut self.late);
        // A put on a version that is gone is never committed.
        late.retain(|late| self.fits(&late.put));
        late.sort_by_key(|late| (late.writer, late.put.part()));
        self.late = late;
        for index in 0..self.nodes.len() {
            let mut puts = std::mem::take(&mut self.nodes[index].background.puts);
            puts.retain(|put| self.fits(put));
            self.nodes[index].background.puts = puts;
        }
        // After the last write, what a candidate knows matters only to find its own unanswered writes.
        let may_write = self.may_write(setup);
        let requests = self.requests;
        let is_still = |index| !may_write && (!setup.asks(index) || requests == setup.requests);
        for (index, node) in
            self.nodes.iter_mut().enumerate().filter(|(index, node)| is_still(*index) && node.is_done())
        {
            let Node { lease, quorum, .. } = Node::new(setup, index);
            node.quorum = quorum;
            if !node.leads(setup) {
                node.lease = lease;
            }
        }
        let (now, readable) = (setup.now(), self.readable());
        let mut round = Round { now, oldest: now - Duration::from_nanos(setup.lease), readable: &readable };
        for node in &mut self.nodes {
            node.lease.visit(&mut round);
            node.quorum.visit(&mut round);
        }
    }

    /// One number for all mirror images of a state.
    pub(super) fn least_image(&self, setup: &Setup) -> u64 {
        let orders = orders(self.nodes.len(), setup.is_alike());
        least_image(orders, |node| self.sketch(node), |order| Image { world: self, order })
    }

    /// A part of what is known of a node, which is the same in each mirror image.
    fn sketch(&self, node: usize) -> impl PartialOrd + use<> {
        let node = &self.nodes[node];
        (node.lease.watch().expires_at(), node.lease.deadline(), node.call.is_some(), node.background.puts.len())
    }
}

struct Image<'a> {
    world: &'a World,
    order: &'a [usize],
}

impl Hash for Image<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // A field that is forgotten here would make one state of two.
        let World {
            nodes,
            parts,
            late,
            faults,
            crashes,
            writes,
            forgeries,
            requests,
            started,
            is_marked,
            violation,
            has_begun: _,
            ids: _,
        } = self.world;
        for node in self.order {
            nodes[*node].hash(state);
        }
        parts.hash(state);
        for Late { writer, put } in late {
            (self.order.iter().position(|at| Some(*at) == *writer), put).hash(state);
        }
        (late.len(), faults, crashes, writes, forgeries, requests, started, is_marked, violation).hash(state);
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let order: Vec<usize> = (0..self.nodes.len()).collect();
        Image { world: self, order: &order }.hash(state);
    }
}
