//! What an elector tells the `metrics` facade. docs/metrics.md has the table.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};

use super::ambiguity::{Ambiguity, Resolution};
use super::request::{About, Operation};
use crate::clock::LocalInstant;
use crate::election::{Answer, EndReason};
use crate::store::StoreErrorKind;

/// Handles to one elector's metrics. They are looked up once a term: a renewal allocates nothing for them.
#[derive(Debug)]
pub(super) struct Meters {
    name: SharedString,
    master: Gauge,
    last_renewal: Gauge,
    renewal_duration: Histogram,
    slow_path: Counter,
    transitions: Counter,
    terms: Counter,
    overruns: Counter,
    identity_clashes: Counter,
    requests: BTreeMap<(Operation, Outcome), Counter>,
    ambiguity: Ambiguity,
}

impl Meters {
    pub(super) fn new(name: &str) -> Self {
        let name = SharedString::from_shared(name.into());
        let master = gauge!("leader_election_master_status", "name" => name.clone());
        master.set(0.0);
        // Known from the start: a series that first shows up with a 1 has no increase to alert on.
        for reason in EndReason::OF_TERMS {
            ends(&name, reason).increment(0);
        }
        for resolution in Resolution::ALL {
            resolutions(&name, resolution).increment(0);
        }
        Self {
            master,
            last_renewal: gauge!("leader_election_last_renewal_timestamp_seconds", "name" => name.clone()),
            renewal_duration: histogram!("leader_election_renewal_duration_seconds", "name" => name.clone()),
            slow_path: counter!("leader_election_slowpath_total", "name" => name.clone()),
            transitions: counter!("leader_election_transitions_total", "name" => name.clone()),
            terms: counter!("leader_election_terms_total", "name" => name.clone()),
            overruns: counter!("leader_election_overruns_total", "name" => name.clone()),
            identity_clashes: counter!("leader_election_identity_clashes_total", "name" => name.clone()),
            requests: BTreeMap::new(),
            ambiguity: Ambiguity::default(),
            name,
        }
    }

    /// A request of a leader's that is not a plain renewal, as client-go counts them.
    pub(super) fn sent(&self, about: &About) {
        if about.while_leading && about.operation == Operation::Get {
            self.slow_path.increment(1);
        }
    }

    pub(super) fn answered(&mut self, about: &About, answer: &Answer, now: LocalInstant, wall_time: DateTime<Utc>) {
        let (operation, outcome) = (about.operation, Outcome::of(answer));
        let counter = self.requests.entry((operation, outcome)).or_insert_with(|| {
            counter!(
                "leader_election_store_requests_total",
                "name" => self.name.clone(), "operation" => operation.name(), "outcome" => outcome.name()
            )
        });
        counter.increment(1);
        if about.while_leading && matches!((operation, outcome), (Operation::Update, Outcome::Ok)) {
            self.renewal_duration.record(now.saturating_since(about.sent_at));
        }
        if matches!((operation, outcome), (Operation::Create | Operation::Update, Outcome::Ok)) {
            let sent_at = wall_time - now.saturating_since(about.sent_at);
            self.last_renewal.set(sent_at.timestamp_micros() as f64 / 1e6);
        }
        let resolved = self.ambiguity.learn(about, answer);
        self.count_resolutions(&resolved);
    }

    pub(super) fn leader_changed(&self) {
        self.transitions.increment(1);
    }

    pub(super) fn overrun(&self) {
        self.overruns.increment(1);
    }

    pub(super) fn identity_clash(&self) {
        self.identity_clashes.increment(1);
    }

    /// Counts the term that begins; its end is counted when what is returned is ended or dropped.
    pub(super) fn term_started(&self) -> TermMeter {
        self.terms.increment(1);
        self.master.set(1.0);
        TermMeter { name: self.name.clone(), master: self.master.clone(), ended: false }
    }

    fn count_resolutions(&self, resolved: &[(Resolution, u64)]) {
        for (resolution, count) in resolved.iter().filter(|(_, count)| *count > 0) {
            resolutions(&self.name, *resolution).increment(*count);
        }
    }
}

fn resolutions(name: &SharedString, resolution: Resolution) -> Counter {
    counter!("leader_election_ambiguous_writes_total", "name" => name.clone(), "resolution" => resolution.name())
}

fn ends(name: &SharedString, reason: &'static str) -> Counter {
    counter!("leader_election_terms_ended_total", "name" => name.clone(), "reason" => reason)
}

impl Drop for Meters {
    fn drop(&mut self) {
        let unresolved = self.ambiguity.give_up();
        self.count_resolutions(&unresolved);
    }
}

/// A term that is counted as leading until it is ended, or dropped.
#[derive(Debug)]
pub(super) struct TermMeter {
    name: SharedString,
    master: Gauge,
    ended: bool,
}

impl TermMeter {
    pub(super) fn end(&mut self, reason: &EndReason) {
        if !std::mem::replace(&mut self.ended, true) {
            self.master.set(0.0);
            ends(&self.name, reason.name()).increment(1);
        }
    }
}

impl Drop for TermMeter {
    fn drop(&mut self) {
        self.end(&EndReason::Cancelled);
    }
}

/// What a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Ok,
    Missing,
    Conflict,
    Rejected,
    Ambiguous,
    Fatal,
    Unreadable,
}

impl Outcome {
    fn of(answer: &Answer) -> Self {
        let failure = match answer {
            Answer::Read(Ok(None)) => return Self::Missing,
            Answer::Read(Ok(Some(_))) | Answer::Written(Ok(_)) => return Self::Ok,
            Answer::Read(Err(failure)) | Answer::Written(Err(failure)) => failure,
        };
        match failure.kind {
            StoreErrorKind::Conflict => Self::Conflict,
            StoreErrorKind::Rejected => Self::Rejected,
            StoreErrorKind::Ambiguous => Self::Ambiguous,
            StoreErrorKind::Fatal => Self::Fatal,
            StoreErrorKind::Unreadable => Self::Unreadable,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::Conflict => "conflict",
            Self::Rejected => "rejected",
            Self::Ambiguous => "ambiguous",
            Self::Fatal => "fatal",
            Self::Unreadable => "unreadable",
        }
    }
}
