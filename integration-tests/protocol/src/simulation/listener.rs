//! A recorder for the events that an elector reports only to the `metrics` facade.

use std::sync::Arc;

use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use super::timeline::ProcessId;
use super::world::World;

/// A recorder for all electors that run on its thread.
pub(super) struct Listener(Arc<World>);

/// The name of a process's elector in its metrics.
pub(super) fn name_of(process: ProcessId) -> String {
    process.to_string()
}

impl Listener {
    pub(super) fn new(world: &Arc<World>) -> Self {
        Self(Arc::clone(world))
    }
}

impl Recorder for Listener {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() != "leader_election_identity_clashes_total" {
            return Counter::noop();
        }
        let name = key.labels().find(|label| label.key() == "name").expect("metrics name their elector");
        let process = name.value().parse().expect("electors have the names that they were given");
        Counter::from_arc(Arc::new(Clashes { world: Arc::clone(&self.0), process }))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

struct Clashes {
    world: Arc<World>,
    process: ProcessId,
}

impl CounterFn for Clashes {
    fn increment(&self, _: u64) {
        self.world.oracle(|oracle, now| oracle.clash_reported(now, self.process));
    }

    fn absolute(&self, _: u64) {}
}
