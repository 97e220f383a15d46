//! Mirror images: states of alike candidates that differ only in which candidate is which.

use std::hash::{Hash, Hasher};

use super::setup::Setup;
use super::world::World;
use crate::kit::{Cell, fingerprint};

impl Setup {
    /// The orders of the nodes in which a state is one of its mirror images.
    fn orders(&self) -> &'static [&'static [usize]] {
        let is_alike = self.nodes.iter().all(|(_, rate)| *rate == self.nodes[0].1)
            && self.other_lease.is_none_or(|lease| lease == self.lease)
            && !self.has_ranks()
            && [0, self.nodes.len()].contains(&self.jobs);
        match self.nodes.len() {
            2 if is_alike => &[&[0, 1], &[1, 0]],
            3 if is_alike => &[&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]],
            2 => &[&[0, 1]],
            _ => &[&[0, 1, 2]],
        }
    }

    /// One number for all mirror images of a state.
    pub(super) fn least_image(&self, world: &World) -> u64 {
        let images = self.orders().iter().map(|order| fingerprint(&Image { world, order }));
        images.min().expect("at least one order")
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
            heard,
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
        (started, job, violation, deleted, transferred, reconfigured, heard, spoilt).hash(state);
        (cell.is_some(), net.late.len()).hash(state);
    }
}
