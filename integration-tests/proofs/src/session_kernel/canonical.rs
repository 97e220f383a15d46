//! The canonical form of a state: the ages that matter, and mirror images.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection_protocol::lease::Visitor;

use super::node::Node;
use super::setup::{FOREVER, Setup};
use super::tiny::Tiny;
use super::world::{Request, World};
use crate::kernel::Id;
use crate::kit::{Flight, least_image, orders};

/// Moves all moments into the past.
struct Shift(Duration);

impl Visitor<Tiny> for Shift {
    fn timer(&mut self, at: &mut LocalInstant) {
        if at.as_nanos() < FOREVER {
            *at = *at - self.0;
        }
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

impl Node {
    fn visit(&mut self, visitor: &mut impl Visitor<Tiny>) {
        self.own.visit(visitor);
        self.others.visit(visitor, |_, ()| {});
        self.locks.visit(visitor);
        self.listing.iter_mut().for_each(|(_, until)| visitor.timer(until));
    }
}

impl World {
    /// Lets a step of time pass.
    pub(super) fn advance(&mut self, setup: &Setup) {
        for (node, rate) in self.nodes.iter_mut().zip(&setup.rates) {
            node.visit(&mut Shift(Duration::from_nanos(*rate)));
        }
    }

    pub(super) fn canonical(&mut self, setup: &Setup) {
        let mut late = std::mem::take(&mut self.net.late);
        late.retain(|late| matches!(&late.request, Request::Write(put) if self.may_commit(setup, late.about, put)));
        self.net.late = late;
        let (now, readable) = (setup.now(), self.readable());
        let oldest = now - Duration::from_nanos(setup.oldest());
        let mut round = Round { now, oldest, readable: &readable };
        self.nodes.iter_mut().for_each(|node| node.visit(&mut round));
        self.net.sort();
    }

    /// One number for all mirror images of a state.
    pub(super) fn least_image(&self, setup: &Setup) -> u64 {
        let orders = orders(self.nodes.len(), setup.is_alike());
        least_image(orders, |node| self.sketch(node), |order| Image { world: self, order })
    }

    /// A part of what is known of a node, which is the same in each mirror image.
    fn sketch(&self, index: usize) -> impl PartialOrd + use<> {
        let node = &self.nodes[index];
        let lease = &node.own;
        let flights = self.net.of(index).iter().filter(|(_, flight)| matches!(flight, Flight::Sent(_))).count();
        (lease.deadline(), node.opened, node.others.iter().count(), flights, self.net.of(index).len())
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
            locks,
            sessions,
            net,
            started,
            is_free_for_all,
            has_deleted_lock,
            has_deleted_session,
            has_spoilt,
            has_delivered_again,
            has_polled_late,
            violation,
            scene,
            has_begun: _,
            ids: _,
        } = self.world;
        for node in self.order {
            (&nodes[*node], net.of(*node)).hash(state);
        }
        locks.hash(state);
        // Their order is that of numbers, which mirror images exchange.
        for node in self.order {
            let own = sessions.iter().filter(|(session, _)| session.is_of(*node, nodes.len()));
            own.for_each(|named| named.hash(state));
        }
        for late in &net.late {
            (self.place_of(late.sender), &late.about, &late.request).hash(state);
        }
        (sessions.len(), net.late.len(), started, is_free_for_all, has_deleted_lock, has_deleted_session).hash(state);
        (has_spoilt, has_delivered_again, has_polled_late, violation, scene).hash(state);
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let order: Vec<usize> = (0..self.nodes.len()).collect();
        Image { world: self, order: &order }.hash(state);
    }
}
