//! The canonical form of a state: the ages that matter, and mirror images.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection_protocol::lease::Visitor;

use super::setup::Setup;
use super::tiny::{Id, Tiny};
use super::world::{Cell, Request, World};
use crate::kit::{Flight, least_image, orders};

/// Moves all moments into the past.
struct Shift(Duration);

impl Visitor<Tiny> for Shift {
    fn timer(&mut self, at: &mut LocalInstant) {
        *at = *at - self.0;
    }

    fn moment(&mut self, at: &mut LocalInstant) {
        *at = *at - self.0;
    }

    fn may_commit(&mut self, _: &Id) -> bool {
        true
    }
}

/// Rounds ages that are too great to matter, and forgets writes that no read will show.
struct Round<'a> {
    now: LocalInstant,
    oldest: LocalInstant,
    readable: &'a [Id],
}

impl Visitor<Tiny> for Round<'_> {
    fn timer(&mut self, at: &mut LocalInstant) {
        *at = (*at).max(self.now);
    }

    fn moment(&mut self, at: &mut LocalInstant) {
        *at = (*at).max(self.oldest);
    }

    fn may_commit(&mut self, id: &Id) -> bool {
        self.readable.contains(id)
    }
}

impl World {
    /// Lets a step of time pass.
    pub(super) fn advance(&mut self, setup: &Setup) {
        if let (Some(cell), Some((rate, _, slack))) = (&mut self.cell, setup.store_clock) {
            cell.age = (cell.age + rate).min(setup.oldest() + slack);
        }
        self.foreign = self.foreign.saturating_sub(setup.rates[0]);
        for (node, rate) in self.nodes.iter_mut().zip(&setup.rates) {
            node.lease.visit(&mut Shift(Duration::from_nanos(*rate)));
            node.blocked = node.blocked.saturating_sub(*rate);
        }
    }

    pub(super) fn canonical(&mut self, setup: &Setup) {
        let mut late = std::mem::take(&mut self.net.late);
        // A write on a version that is gone is never committed. While the record is spoilt, its version may come back.
        late.retain(|late| matches!(&late.request, Request::Write(write) if self.fits(write)));
        self.net.late = late;
        let (now, readable) = (setup.now(), self.readable());
        let oldest = now - Duration::from_nanos(setup.oldest());
        let mut round = Round { now, oldest, readable: &readable };
        self.nodes.iter_mut().for_each(|node| node.lease.visit(&mut round));
        self.net.sort();
    }

    /// One number for all mirror images of a state.
    pub(super) fn least_image(&self, setup: &Setup) -> u64 {
        let orders = orders(self.nodes.len(), setup.is_alike());
        least_image(orders, |node| self.sketch(node), |order| Image { world: self, order })
    }

    /// A part of what is known of a node, which is the same in each mirror image.
    fn sketch(&self, node: usize) -> impl PartialOrd + use<> {
        let is_writer = self.cell.as_ref().is_some_and(|cell| cell.writer == Some(node));
        let flight = self.net.get(node, &()).map(|flight| matches!(flight, Flight::Sent(_)));
        let lease = &self.nodes[node].lease;
        (lease.watch().expires_at(), lease.deadline(), is_writer, flight)
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
            cell,
            net,
            started,
            is_marked,
            is_deleted,
            requests,
            reconfigures,
            spoilt,
            foreign,
            violation,
            scene,
            ids: _,
        } = self.world;
        if let Some(Cell { found, writer, age }) = cell {
            (found, self.place_of(*writer), age).hash(state);
        }
        for node in self.order {
            (&nodes[*node], net.of(*node)).hash(state);
        }
        for late in &net.late {
            (self.place_of(late.sender), &late.request).hash(state);
        }
        (started, is_marked, is_deleted, requests, reconfigures, spoilt, foreign, violation, scene).hash(state);
        (cell.is_some(), net.late.len()).hash(state);
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let order: Vec<usize> = (0..self.nodes.len()).collect();
        Image { world: self, order: &order }.hash(state);
    }
}
