//! Time in a state: the ages that a step of the clocks changes, and those that matter.

use std::time::Duration;

use leaderelection::election::Visitor;

use super::message::LAST;
use super::setup::{Setup, TICK};
use super::world::World;
use crate::kit::{Ages, Flight, shift};
use crate::sessions::wire::Ask;

impl World {
    /// Lets a step of time pass. The readings of the clocks stay, and all remembered moments move into the past.
    pub(super) fn advance(&mut self) {
        let mut shift = shift(Duration::from_nanos(TICK));
        for node in &mut self.nodes {
            node.member.visit(&mut shift);
            if let Some(lease_end) = &mut node.lease_end {
                shift.timer(lease_end);
            }
        }
    }

    /// Rounds the ages that are too great to matter, and forgets the writes that nothing shows any more.
    pub(super) fn canonical(&mut self, setup: &Setup) {
        let sent = self.net.flights().filter_map(|flight| match flight {
            Flight::Sent(Ask::Write(write)) => Some(&*write.record),
            _ => None,
        });
        let late = self.net.late.iter().filter_map(|late| match &late.request {
            Ask::Write(write) => Some(&*write.record),
            _ => None,
        });
        let cells = self.sessions.values().chain(self.locks.iter().flatten()).map(|cell| &*cell.record);
        let live_writes: Vec<&str> =
            cells.chain(sent).chain(late).filter_map(|record| record.write_id.as_deref()).collect();
        let mut ages = Ages {
            now: setup.now(),
            oldest: Duration::from_nanos(setup.timings[0].max(setup.delete_after.unwrap_or_default())),
            longest_pause: Some(Duration::from_nanos(u64::from(setup.slow.reads))),
            number: LAST,
            live_writes: &live_writes,
        };
        for node in &mut self.nodes {
            node.member.visit(&mut ages);
            if let Some(lease_end) = &mut node.lease_end {
                ages.timer(lease_end);
            }
        }
        self.net.sort();
    }
}
