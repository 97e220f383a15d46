//! The canonical form of a state: one representative for all states whose differences do not matter.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{Answer, Visitor, Write};
use leaderelection::{LeaderElectionRecord, Version};

use super::node::{Ask, Flight, Reply};
use super::world::{Setup, TICK, World};

impl World {
    /// Lets a step of time pass. The readings of the clocks stay, and all remembered moments move into the past.
    pub(super) fn advance(&mut self, _setup: &Setup) {
        let mut shift = Shift(Duration::from_nanos(TICK));
        for node in &mut self.nodes {
            node.member.visit(&mut shift);
            if let Some(lease_end) = &mut node.lease_end {
                shift.timer(lease_end);
            }
        }
    }

    /// Renames ids in their order of appearance, and rounds the ages that are too great to matter.
    pub(super) fn canonical(mut self, setup: &Setup) -> World {
        let oldest = setup.timings[0].max(setup.delete_after.unwrap_or_default());
        let floor = Floor {
            timers: LocalInstant::default() + Duration::from_nanos(setup.now()),
            moments: LocalInstant::default() + Duration::from_nanos(setup.now() - oldest),
            pauses: Duration::from_nanos(u64::from(setup.slow.reads)),
        };
        for node in &mut self.nodes {
            node.member.visit(&mut { floor });
            if let Some(lease_end) = &mut node.lease_end {
                { floor }.timer(lease_end);
            }
        }
        let mut landing = Landing { ids: self.ids_that_may_be_read() };
        for node in &mut self.nodes {
            node.member.visit(&mut landing);
        }
        self.orphans.sort_by(|a, b| (a.writer, &a.target).cmp(&(b.writer, &b.target)));
        let mut names = Names::default();
        self.visit_ids(&mut names);
        self.ids = names.seen.len();
        self
    }

    /// Returns the ids in the objects, and in the writes that may still change an object.
    fn ids_that_may_be_read(&self) -> Vec<String> {
        let flights = self.nodes.iter().flat_map(|node| node.flights.values()).filter_map(|flight| match flight {
            Flight::Sent(Ask::Write(write)) => Some(&*write.record),
            _ => None,
        });
        let cells = self.sessions.values().chain(self.locks.iter().flatten()).map(|cell| &cell.record);
        let orphans = self.orphans.iter().map(|orphan| &*orphan.write.record);
        flights.chain(cells).chain(orphans).filter_map(|record| record.write_id.clone()).collect()
    }

    fn visit_ids(&mut self, names: &mut Names) {
        for cell in self.sessions.values_mut().chain(self.locks.iter_mut().flatten()) {
            names.record(&mut cell.record);
            names.version(&mut cell.version);
        }
        for node in &mut self.nodes {
            node.member.visit(names);
            for flight in node.flights.values_mut() {
                match flight {
                    Flight::Sent(Ask::Write(write)) => names.write(write),
                    Flight::Sent(Ask::Delete(version))
                    | Flight::Answered(Reply::Object(Answer::Written(Ok(version)))) => names.version(version),
                    _ => {}
                }
            }
        }
        for orphan in &mut self.orphans {
            names.write(&mut orphan.write);
        }
    }
}

/// Renames ids. Versions and write ids share their names.
#[derive(Default)]
struct Names {
    seen: Vec<String>,
}

impl Names {
    fn rename(&mut self, id: &str) -> String {
        let index = self.seen.iter().position(|seen| seen == id).unwrap_or_else(|| {
            self.seen.push(id.to_owned());
            self.seen.len() - 1
        });
        index.to_string()
    }

    fn record(&mut self, record: &mut LeaderElectionRecord) {
        if let Some(write_id) = &mut record.write_id {
            self.write_id(write_id);
        }
    }

    fn write(&mut self, write: &mut Write) {
        self.record(Arc::make_mut(&mut write.record));
        if let Some(expected) = &mut write.expected {
            self.version(expected);
        }
    }
}

impl Visitor for Names {
    fn version(&mut self, version: &mut Version) {
        let renamed = self.rename(version.as_str());
        *version = Version::new(renamed);
    }

    fn write_id(&mut self, write_id: &mut String) {
        *write_id = self.rename(write_id);
    }
}

struct Landing {
    ids: Vec<String>,
}

impl Visitor for Landing {
    fn may_land(&mut self, write_id: &str) -> bool {
        self.ids.iter().any(|id| id == write_id)
    }
}

struct Shift(Duration);

impl Visitor for Shift {
    fn timer(&mut self, timer: &mut LocalInstant) {
        *timer = *timer - self.0;
    }

    fn moment(&mut self, moment: &mut LocalInstant) {
        *moment = *moment - self.0;
    }
}

/// A limit on ages: a timer that has fired counts as firing now, and the age of the longest time that matters counts as
/// any greater age.
#[derive(Clone, Copy)]
struct Floor {
    timers: LocalInstant,
    moments: LocalInstant,
    /// The longest pause: a node may do anything at any later moment in any case.
    pauses: Duration,
}

impl Visitor for Floor {
    fn pause(&mut self, pause: &mut LocalInstant) {
        *pause = (*pause).clamp(self.timers, self.timers + self.pauses);
    }

    fn timer(&mut self, timer: &mut LocalInstant) {
        *timer = (*timer).max(self.timers);
    }

    fn moment(&mut self, moment: &mut LocalInstant) {
        *moment = (*moment).max(self.moments);
    }
}
