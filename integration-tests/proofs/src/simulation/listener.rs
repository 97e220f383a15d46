//! A recorder for the events that an elector reports only to the `metrics` facade, and for the moments of its reports.

use std::sync::Arc;

use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

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

    fn process(&self, key: &Key) -> Metered {
        let name = key.labels().find(|label| label.key() == "name").expect("metrics name their elector");
        let process = name.value().parse().expect("electors have the names that they were given");
        Metered { world: Arc::clone(&self.0), process }
    }
}

impl Recorder for Listener {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match key.name() {
            "leader_election_identity_clashes_total" => Counter::from_arc(Arc::new(Clashes(self.process(key)))),
            "leader_election_overruns_total" => Counter::from_arc(Arc::new(Overruns(self.process(key)))),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        if key.name() != "leader_election_last_renewal_timestamp_seconds" {
            return Gauge::noop();
        }
        Gauge::from_arc(Arc::new(Renewals(self.process(key))))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// The process whose elector has a metric.
struct Metered {
    world: Arc<World>,
    process: ProcessId,
}

struct Clashes(Metered);

impl CounterFn for Clashes {
    fn increment(&self, _: u64) {
        self.0.world.oracle(|oracle, now| oracle.clash_reported(now, self.0.process));
    }

    fn absolute(&self, _: u64) {}
}

/// The elector counts an overrun between the order to drop the work and the drop.
struct Overruns(Metered);

impl CounterFn for Overruns {
    fn increment(&self, _: u64) {
        self.0.world.stand_still_at_times(self.0.process);
    }

    fn absolute(&self, _: u64) {}
}

/// The elector sets this gauge between the answer to its write and the consequences of that answer.
struct Renewals(Metered);

impl GaugeFn for Renewals {
    fn increment(&self, _: f64) {}

    fn decrement(&self, _: f64) {}

    fn set(&self, _: f64) {
        self.0.world.stand_still_at_times(self.0.process);
    }
}
