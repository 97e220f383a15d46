//! The metrics of an elector, for the `metrics` facade. docs/metrics.md has the table.

use std::mem::replace;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};

use super::request::Answered;
use crate::election::{EndReason, Fact, Operation};
use crate::store::StoreErrorKind;

/// Handles to one elector's metrics. A run looks these handles up once, so a renewal allocates nothing for metrics.
#[derive(Debug)]
pub(super) struct Meters {
    name: SharedString,
    master: Gauge,
    /// `None` for a lock that a session holds, because only the session is renewed.
    renewals: Option<Renewals>,
    slow_path: Counter,
    transitions: Counter,
    terms: Counter,
    overruns: Counter,
    identity_clashes: Counter,
    requests: Requests,
    doubts: Doubts,
    /// `true` while a counted term has not ended.
    leads: bool,
}

impl Meters {
    /// The metrics of an elector whose lock has a lease.
    pub(super) fn of_elector(name: &str) -> Self {
        let name = SharedString::from_shared(name.into());
        let renewals = Some(Renewals::new(&name));
        Self::new(name, renewals)
    }

    /// The metrics of a lock that a session holds.
    #[cfg(feature = "sessions")]
    pub(super) fn of_lock(name: &str) -> Self {
        Self::new(SharedString::from_shared(name.into()), None)
    }

    fn new(name: SharedString, renewals: Option<Renewals>) -> Self {
        let master = gauge!("leader_election_master_status", "name" => name.clone());
        master.set(0.0);
        // All series start at 0, because `increase()` does not see a series that first appears with a 1.
        for reason in EndReason::OF_TERMS {
            ends(&name, reason).increment(0);
        }
        Self {
            master,
            renewals,
            slow_path: counter!("leader_election_slowpath_total", "name" => name.clone()),
            transitions: counter!("leader_election_transitions_total", "name" => name.clone()),
            terms: counter!("leader_election_terms_total", "name" => name.clone()),
            overruns: counter!("leader_election_overruns_total", "name" => name.clone()),
            identity_clashes: clashes(&name),
            requests: Requests::new(&name),
            doubts: Doubts::new(&name),
            leads: false,
            name,
        }
    }

    /// Counts a leader's request that is not a plain renewal, as client-go does.
    pub(super) fn sent(&self, operation: Operation) {
        if self.leads && operation == Operation::Get && self.renewals.is_some() {
            self.slow_path.increment(1);
        }
    }

    pub(super) fn answered(
        &mut self,
        operation: Operation,
        took: Duration,
        answered: Answered,
        wall_time: DateTime<Utc>,
    ) {
        self.requests.count(operation, answered);
        if let Some(renewals) = &self.renewals {
            renewals.answered(operation, took, answered, wall_time, self.leads);
        }
    }

    pub(super) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::LeaderChanged { leader: Some(_) } => self.transitions.increment(1),
            fact => self.doubts.fact(fact),
        }
    }

    pub(super) fn overrun(&self) {
        self.overruns.increment(1);
    }

    pub(super) fn identity_clash(&self) {
        self.identity_clashes.increment(1);
    }

    pub(super) fn term_started(&mut self) {
        self.terms.increment(1);
        self.master.set(1.0);
        self.leads = true;
    }

    pub(super) fn term_ended(&mut self, reason: &EndReason) {
        if replace(&mut self.leads, false) {
            self.master.set(0.0);
            ends(&self.name, reason.name()).increment(1);
        }
    }
}

impl Drop for Meters {
    fn drop(&mut self) {
        self.term_ended(&EndReason::Cancelled);
    }
}

/// Handles to the metrics of a session. Its locks have metrics of their own.
#[cfg(feature = "sessions")]
#[derive(Debug)]
pub(super) struct SessionMeters {
    locks: Gauge,
    sessions: Gauge,
    takeovers: Counter,
    identity_clashes: Counter,
    renewals: Renewals,
    requests: Requests,
    doubts: Doubts,
}

#[cfg(feature = "sessions")]
impl SessionMeters {
    pub(super) fn new(name: &str) -> Self {
        let name = SharedString::from_shared(name.into());
        let (locks, sessions) = ("leader_election_session_locks", "leader_election_sessions");
        Self {
            locks: gauge!(locks, "name" => name.clone()),
            sessions: gauge!(sessions, "name" => name.clone()),
            takeovers: counter!("leader_election_session_takeovers_total", "name" => name.clone()),
            identity_clashes: clashes(&name),
            renewals: Renewals::new(&name),
            requests: Requests::new(&name),
            doubts: Doubts::new(&name),
        }
    }

    /// Sets the number of locks that this session leads.
    pub(super) fn leads(&self, locks: usize) {
        self.locks.set(locks as f64);
    }

    /// Sets the number of sessions that are known to be alive.
    pub(super) fn sees(&self, sessions: usize) {
        self.sessions.set(sessions as f64);
    }

    /// Counts a lock that was taken from a session of another process that ended.
    pub(super) fn took_over(&self) {
        self.takeovers.increment(1);
    }

    pub(super) fn identity_clash(&self) {
        self.identity_clashes.increment(1);
    }

    pub(super) fn fact(&mut self, fact: &Fact) {
        self.doubts.fact(fact);
    }

    /// Counts a request about another session, or a listing.
    pub(super) fn answered(&mut self, operation: Operation, answered: Answered) {
        self.requests.count(operation, answered);
    }

    /// Counts a request about the own session.
    pub(super) fn answered_own(
        &mut self,
        operation: Operation,
        took: Duration,
        answered: Answered,
        wall_time: DateTime<Utc>,
    ) {
        self.requests.count(operation, answered);
        self.renewals.answered(operation, took, answered, wall_time, true);
    }
}

#[cfg(feature = "sessions")]
impl Drop for SessionMeters {
    fn drop(&mut self) {
        self.leads(0);
        self.sees(0);
    }
}

/// The renewals of a lease.
#[derive(Debug)]
struct Renewals {
    last: Gauge,
    duration: Histogram,
}

impl Renewals {
    fn new(name: &SharedString) -> Self {
        Self {
            last: gauge!("leader_election_last_renewal_timestamp_seconds", "name" => name.clone()),
            duration: histogram!("leader_election_renewal_duration_seconds", "name" => name.clone()),
        }
    }

    fn answered(
        &self,
        operation: Operation,
        took: Duration,
        answered: Answered,
        wall_time: DateTime<Utc>,
        leads: bool,
    ) {
        if answered != Answered::Ok || !matches!(operation, Operation::Create | Operation::Update) {
            return;
        }
        self.last.set((wall_time - took).timestamp_micros() as f64 / 1e6);
        if leads && operation == Operation::Update {
            self.duration.record(took);
        }
    }
}

/// The requests to the store.
#[derive(Debug)]
struct Requests {
    name: SharedString,
    /// A list, because it is short: an elector that nothing disturbs has two or three entries.
    counters: Vec<(Operation, Answered, Counter)>,
}

impl Requests {
    fn new(name: &SharedString) -> Self {
        Self { name: name.clone(), counters: Vec::new() }
    }

    fn count(&mut self, operation: Operation, answered: Answered) {
        let known = self.counters.iter().find(|(of, outcome, _)| (*of, *outcome) == (operation, answered));
        if let Some((_, _, counter)) = known {
            return counter.increment(1);
        }
        let counter = counter!(
            "leader_election_store_requests_total",
            "name" => self.name.clone(), "operation" => operation.name(), "outcome" => label(answered)
        );
        counter.increment(1);
        self.counters.push((operation, answered, counter));
    }
}

/// The writes whose outcome is unknown.
#[derive(Debug)]
struct Doubts {
    name: SharedString,
    doubted: u64,
}

impl Doubts {
    fn new(name: &SharedString) -> Self {
        for resolution in ["landed", "lost", "unknown"] {
            resolutions(name, resolution).increment(0);
        }
        Self { name: name.clone(), doubted: 0 }
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Doubted => self.doubted += 1,
            Fact::Resolved { landed } => {
                self.doubted = self.doubted.saturating_sub(1);
                let resolution = if *landed { "landed" } else { "lost" };
                resolutions(&self.name, resolution).increment(1);
            }
            _ => {}
        }
    }
}

impl Drop for Doubts {
    fn drop(&mut self) {
        // The run is over before the outcome became known.
        resolutions(&self.name, "unknown").increment(self.doubted);
    }
}

fn clashes(name: &SharedString) -> Counter {
    counter!("leader_election_identity_clashes_total", "name" => name.clone())
}

fn resolutions(name: &SharedString, resolution: &'static str) -> Counter {
    counter!("leader_election_ambiguous_writes_total", "name" => name.clone(), "resolution" => resolution)
}

fn ends(name: &SharedString, reason: &'static str) -> Counter {
    counter!("leader_election_terms_ended_total", "name" => name.clone(), "reason" => reason)
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
