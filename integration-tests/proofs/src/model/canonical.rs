//! Time in a state: the ages that a step of the clocks changes, and those that matter.

use std::time::Duration;

use leaderelection::election::{Answer, Request, Visitor};

use super::node::Answered;
use super::peer;
use super::setup::Setup;
use super::world::World;
use crate::kit::{Ages, Flight, shift};

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
            if let Some((_, lease)) = &mut node.barred {
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
            Request::Look => None,
        });
        let readable = flights.chain(self.cell.iter().map(|cell| &*cell.record)).chain(late);
        let landing: Vec<&str> = readable.filter_map(|record| record.write_id.as_deref()).collect();
        let oldest = Duration::from_nanos(setup.longest_memory());
        let mut ages = Ages { now: setup.now(), oldest, longest_pause: None, number: peer::LAST, landing: &landing };
        for node in &mut self.nodes {
            node.election.visit(&mut ages);
            if let Some(lease_end) = &mut node.lease_end {
                ages.timer(lease_end);
            }
        }
        self.net.sort();
    }
}
