//! The metrics of an elector, for the `metrics` facade. docs/metrics.md has the table.

use std::mem::replace;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};

use super::request::Answered;
use crate::clock::Clock;
use crate::election::{EndReason, Fact, Operation};
use crate::store::StoreErrorKind;

const SLOW_PATH: &str = "leader_election_slowpath_total";
const TRANSITIONS: &str = "leader_election_transitions_total";
const TERMS: &str = "leader_election_terms_total";
const OVERRUNS: &str = "leader_election_overruns_total";
const IDENTITY_CLASHES: &str = "leader_election_identity_clashes_total";

/// One elector's metrics. A run looks up once what a renewal needs, so a renewal allocates nothing for metrics. All else is
/// rare, and is looked up when it happens, so that an idle elector stays small.
#[derive(Debug)]
pub(super) struct Meters {
    name: SharedString,
    last_renewal: Gauge,
    renewal_duration: Histogram,
    /// A list, because it is short: an elector that nothing disturbs has two or three entries.
    requests: Vec<(Operation, Answered, Counter)>,
    /// `true` while a counted term has not ended.
    leads: bool,
    /// The number of writes whose outcome is unknown.
    doubted: u64,
}

impl Meters {
    pub(super) fn new(name: &str) -> Self {
        let name = SharedString::from_shared(name.into());
        master(&name).set(0.0);
        // All series start at 0, because `increase()` does not see a series that first appears with a 1.
        for events in [SLOW_PATH, TRANSITIONS, TERMS, OVERRUNS, IDENTITY_CLASHES] {
            counter(&name, events).increment(0);
        }
        for reason in EndReason::OF_TERMS {
            ends(&name, reason).increment(0);
        }
        for resolution in ["landed", "lost", "unknown"] {
            resolutions(&name, resolution).increment(0);
        }
        Self {
            last_renewal: gauge!("leader_election_last_renewal_timestamp_seconds", "name" => name.clone()),
            renewal_duration: histogram!("leader_election_renewal_duration_seconds", "name" => name.clone()),
            requests: Vec::new(),
            leads: false,
            doubted: 0,
            name,
        }
    }

    /// Counts a leader's request that is not a plain renewal, as client-go does.
    pub(super) fn sent(&self, operation: Operation) {
        if self.leads && operation == Operation::Get {
            counter(&self.name, SLOW_PATH).increment(1);
        }
    }

    pub(super) fn answered(&mut self, operation: Operation, took: Duration, answered: Answered, clock: &dyn Clock) {
        self.count(operation, answered);
        if answered != Answered::Ok || !matches!(operation, Operation::Create | Operation::Update) {
            return;
        }
        self.last_renewal.set((clock.wall_time() - took).timestamp_micros() as f64 / 1e6);
        if self.leads && operation == Operation::Update {
            self.renewal_duration.record(took);
        }
    }

    fn count(&mut self, operation: Operation, answered: Answered) {
        let known = self.requests.iter().find(|(of, outcome, _)| (*of, *outcome) == (operation, answered));
        if let Some((_, _, counter)) = known {
            return counter.increment(1);
        }
        let counter = counter!(
            "leader_election_store_requests_total",
            "name" => self.name.clone(), "operation" => operation.name(), "outcome" => label(answered)
        );
        counter.increment(1);
        self.requests.reserve_exact(1);
        self.requests.push((operation, answered, counter));
    }

    pub(super) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::LeaderChanged { leader: Some(_) } => counter(&self.name, TRANSITIONS).increment(1),
            Fact::Doubted => self.doubted += 1,
            Fact::Resolved { landed } => {
                self.doubted = self.doubted.saturating_sub(1);
                let resolution = if *landed { "landed" } else { "lost" };
                resolutions(&self.name, resolution).increment(1);
            }
            _ => {}
        }
    }

    pub(super) fn overrun(&self) {
        counter(&self.name, OVERRUNS).increment(1);
    }

    pub(super) fn identity_clash(&self) {
        counter(&self.name, IDENTITY_CLASHES).increment(1);
    }

    pub(super) fn term_started(&mut self) {
        counter(&self.name, TERMS).increment(1);
        master(&self.name).set(1.0);
        self.leads = true;
    }

    pub(super) fn term_ended(&mut self, reason: &EndReason) {
        if replace(&mut self.leads, false) {
            master(&self.name).set(0.0);
            ends(&self.name, reason.name()).increment(1);
        }
    }
}

fn master(name: &SharedString) -> Gauge {
    gauge!("leader_election_master_status", "name" => name.clone())
}

fn counter(name: &SharedString, events: &'static str) -> Counter {
    counter!(events, "name" => name.clone())
}

fn resolutions(name: &SharedString, resolution: &'static str) -> Counter {
    counter!("leader_election_ambiguous_writes_total", "name" => name.clone(), "resolution" => resolution)
}

fn ends(name: &SharedString, reason: &'static str) -> Counter {
    counter!("leader_election_terms_ended_total", "name" => name.clone(), "reason" => reason)
}

impl Drop for Meters {
    fn drop(&mut self) {
        self.term_ended(&EndReason::Cancelled);
        // The run is over before the outcome became known.
        resolutions(&self.name, "unknown").increment(self.doubted);
    }
}

fn label(answered: Answered) -> &'static str {
    match answered {
        Answered::Ok => "ok",
        Answered::Missing => "missing",
        Answered::Failed(StoreErrorKind::Conflict) => "conflict",
        Answered::Failed(StoreErrorKind::Rejected) => "rejected",
        Answered::Failed(StoreErrorKind::Ambiguous) => "ambiguous",
        Answered::Failed(StoreErrorKind::Fatal) => "fatal",
        Answered::Failed(StoreErrorKind::Unreadable) => "unreadable",
    }
}
