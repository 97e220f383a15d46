//! A recorder for the events that an elector reports only to the `metrics` facade, and for the moments of its reports.

use std::sync::Arc;

use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use super::names::ProcessId;
use super::world::World;

/// A recorder for all electors that run on its thread. Each elector's name in its metrics is the number of its process.
pub(super) struct Listener(pub(super) Arc<World>);

impl Listener {
    fn metric(&self, key: &Key, changes: fn(&World, ProcessId)) -> Arc<Metric> {
        let name = key.labels().find(|label| label.key() == "name").expect("metrics name their elector");
        let process = name.value().parse().expect("electors have the names that they were given");
        Arc::new(Metric { world: Arc::clone(&self.0), process, changes })
    }
}

impl Recorder for Listener {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match key.name() {
            "leader_election_identity_clashes_total" => {
                Counter::from_arc(self.metric(key, |world, process| world.oracle().duplicate_reported(process)))
            }
            // The elector counts an overrun between the order to drop the work and the drop.
            "leader_election_overruns_total" => Counter::from_arc(self.metric(key, World::stand_still_at_times)),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match key.name() {
            // The elector sets this gauge between the answer to its write and the consequences of that answer.
            "leader_election_last_renewal_timestamp_seconds" => {
                Gauge::from_arc(self.metric(key, World::stand_still_at_times))
            }
            _ => Gauge::noop(),
        }
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// A metric of a process's elector, and what happens when the elector changes it.
struct Metric {
    world: Arc<World>,
    process: ProcessId,
    changes: fn(&World, ProcessId),
}

impl CounterFn for Metric {
    fn increment(&self, _: u64) {
        (self.changes)(&self.world, self.process);
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Metric {
    fn increment(&self, _: f64) {}

    fn decrement(&self, _: f64) {}

    fn set(&self, _: f64) {
        (self.changes)(&self.world, self.process);
    }
}
