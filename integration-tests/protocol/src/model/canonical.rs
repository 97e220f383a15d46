//! The canonical form of a state: one representative for all states whose differences do not matter.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{Answer, Request, Visitor};
use leaderelection::{LeaderElectionRecord, Version};

use super::node::Flight;
use super::peer;
use super::world::{Setup, World};

impl World {
    /// Lets a step of time pass. The readings of the clocks stay, and all remembered moments move into the past.
    pub(super) fn advance(&mut self, setup: &Setup) {
        if let (Some(cell), Some(clock)) = (&mut self.cell, setup.store_clock) {
            // A greater age makes no difference.
            cell.age = (cell.age + clock.rate).min(setup.longest_lease() + clock.slack);
        }
        for (node, (_, rate)) in self.nodes.iter_mut().zip(&setup.nodes) {
            let passed = Duration::from_nanos(*rate);
            node.election.visit(&mut Shift(passed));
            if let Some(lease_end) = &mut node.lease_end {
                Shift(passed).timer(lease_end);
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

    /// Renames ids in their order of appearance, and rounds the ages that are too great to matter.
    pub(super) fn canonical(mut self, setup: &Setup) -> World {
        let floor = Floor {
            timers: LocalInstant::default() + Duration::from_nanos(setup.now()),
            moments: LocalInstant::default() + Duration::from_nanos(setup.now() - setup.longest_memory()),
        };
        for node in &mut self.nodes {
            node.election.visit(&mut { floor });
            if let Some(lease_end) = &mut node.lease_end {
                { floor }.timer(lease_end);
            }
        }
        let mut landing = Landing { ids: self.ids_that_may_be_read() };
        for node in &mut self.nodes {
            node.election.visit(&mut landing);
        }
        self.orphans.sort_by_key(|(writer, record)| (*writer, record.leader_transitions));
        let mut names = Names::default();
        self.visit_ids(&mut names);
        self.ids = names.seen.len();
        self
    }

    /// Returns the ids in the object, in the writes that may still change the object, and in the reads of the object.
    fn ids_that_may_be_read(&self) -> Vec<String> {
        let flights = self.nodes.iter().filter_map(|node| match &node.flight {
            Some(Flight::Sent(Request::Write(write))) => Some(&*write.record),
            Some(Flight::Answered { answer: Answer::Read(Ok(Some(found))), .. }) => Some(&found.record),
            _ => None,
        });
        let object = self.cell.iter().map(|cell| &cell.record);
        let orphans = self.orphans.iter().map(|(_, record)| record);
        flights.chain(object).chain(orphans).filter_map(|record| record.write_id.clone()).collect()
    }

    fn visit_ids(&mut self, names: &mut Names) {
        if let Some(cell) = &mut self.cell {
            names.record(&mut cell.record);
            names.version(&mut cell.version);
        }
        for node in &mut self.nodes {
            node.election.visit(names);
            if let Some(watch) = &mut node.clash_watch {
                watch.visit(names);
            }
            if let Some((version, _)) = &mut node.barred {
                names.version(version);
            }
            match &mut node.flight {
                Some(Flight::Sent(Request::Write(write))) => {
                    names.record(Arc::make_mut(&mut write.record));
                    if let Some(expected) = &mut write.expected {
                        names.version(expected);
                    }
                }
                Some(Flight::Answered { answer: Answer::Read(Ok(Some(found))), .. }) => {
                    names.record(&mut found.record);
                    names.version(&mut found.version);
                }
                Some(Flight::Answered { answer: Answer::Written(Ok(version)), .. }) => names.version(version),
                _ => {}
            }
        }
        for (_, record) in &mut self.orphans {
            names.record(record);
        }
    }
}

/// Returns an id that does not occur in a state with `ids` different ids.
pub(super) fn unused_id(ids: usize) -> String {
    ids.to_string()
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
}

impl Visitor for Names {
    fn version(&mut self, version: &mut Version) {
        let renamed = self.rename(version.as_str());
        *version = Version::new(renamed);
    }

    fn write_id(&mut self, write_id: &mut String) {
        *write_id = self.rename(write_id);
    }

    fn number(&mut self, number: &mut u64) {
        *number = peer::LAST;
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

/// A limit on ages: a timer that has fired counts as firing now, and an age of a whole lease counts as any greater
/// age.
#[derive(Clone, Copy)]
struct Floor {
    timers: LocalInstant,
    moments: LocalInstant,
}

impl Visitor for Floor {
    fn timer(&mut self, timer: &mut LocalInstant) {
        *timer = (*timer).max(self.timers);
    }

    fn moment(&mut self, moment: &mut LocalInstant) {
        *moment = (*moment).max(self.moments);
    }
}
