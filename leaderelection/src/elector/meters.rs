//! The metrics of an elector, for the `metrics` facade. docs/metrics.md has the table.

use std::mem::replace;
use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};

use super::listeners::Listeners;
use super::request::{Answered, Asked};
use crate::clock::LocalInstant;
use crate::election::{Fact, Operation, TermEndReason};
use crate::store::StoreErrorKind;

const SLOW_PATH: &str = "leader_election_slowpath_total";
const TRANSITIONS: &str = "leader_election_transitions_total";
const TERMS: &str = "leader_election_terms_total";
const OVERRUNS: &str = "leader_election_overruns_total";
const DUPLICATE_IDENTITIES: &str = "leader_election_identity_clashes_total";

/// One elector's metrics. This keeps handles only to the metrics that every renewal needs, so that a renewal allocates
/// nothing. The others change rarely, and their handles would cost memory for each of a session's thousands of locks.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) listeners: Arc<dyn Listeners>,
    /// `None` for a lock of a session, because only the session's lease is renewed.
    lease: Option<Box<LeaseMeters>>,
    ambiguous_writes: AmbiguousWrites,
    /// `true` while a term that was counted as started has not ended.
    leads: bool,
    /// The number of parts that the leader ignores, as last reported; `None` for a lock without parts.
    left_out: Option<usize>,
}

/// The metrics of a lease that is renewed.
#[derive(Debug)]
struct LeaseMeters {
    renewals: Renewals,
    requests: Requests,
}

impl LeaseMeters {
    fn new(name: &SharedString) -> Self {
        Self { renewals: Renewals::new(name), requests: Requests::default() }
    }
}

impl Meters {
    pub(crate) fn new(listeners: Arc<dyn Listeners>) -> Self {
        let name = SharedString::from_shared(listeners.name());
        let lease = listeners.lock_of_session().is_none().then(|| Box::new(LeaseMeters::new(&name)));
        let ambiguous_writes = AmbiguousWrites::new(&name);
        let meters = Self { listeners, lease, ambiguous_writes, leads: false, left_out: None };
        meters.master(false);
        // All series start at 0, because Prometheus's `increase()` misses the step to 1 if a series first appears with a 1. Looking up a
        // counter starts its series.
        for reason in TermEndReason::OF_TERMS {
            ends(&name, *reason).increment(0);
        }
        for counted in [SLOW_PATH, TRANSITIONS, TERMS, OVERRUNS, DUPLICATE_IDENTITIES] {
            drop(meters.counter(counted));
        }
        meters
    }

    /// Counts a read by a leader, which normally renews with a single write. client-go has the same counter.
    pub(crate) fn sent(&self, operation: Operation) {
        if self.leads && operation == Operation::Get && self.lease.is_some() {
            self.counter(SLOW_PATH).increment(1);
        }
    }

    pub(crate) fn answered(&mut self, now: LocalInstant, asked: &Asked, answered: Answered) {
        match &mut self.lease {
            // Looked up each time, because a lock of a session sends few requests, and handles for ten thousand locks would cost memory.
            None => requests(&self.name(), asked.operation, answered).increment(1),
            Some(lease) => {
                lease.requests.count(|| SharedString::from_shared(self.listeners.name()), asked.operation, answered);
                lease.renewals.answered(now, asked, answered, self.leads);
            }
        }
    }

    pub(crate) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::LeaderChanged { leader: Some(_) } => self.counter(TRANSITIONS).increment(1),
            fact => self.ambiguous_writes.fact(|| SharedString::from_shared(self.listeners.name()), fact),
        }
    }

    pub(crate) fn overrun(&self) {
        self.counter(OVERRUNS).increment(1);
    }

    pub(crate) fn duplicate_identity(&self) {
        self.counter(DUPLICATE_IDENTITIES).increment(1);
    }

    /// Reports the number of parts that the leader ignores, if it has changed.
    pub(crate) fn left_out(&mut self, parts: Option<usize>) {
        let has_changed = replace(&mut self.left_out, parts) != parts;
        if let Some(parts) = parts.filter(|_| has_changed) {
            gauge!("leader_election_parts_left_out", "name" => self.name()).set(parts as f64);
        }
    }

    pub(crate) fn term_started(&mut self) {
        self.counter(TERMS).increment(1);
        self.master(true);
        self.leads = true;
    }

    pub(crate) fn term_ended(&mut self, reason: &TermEndReason) {
        if replace(&mut self.leads, false) {
            self.master(false);
            ends(&self.name(), reason.name().to_owned()).increment(1);
            self.left_out(self.left_out.map(|_| 0));
        }
    }

    fn name(&self) -> SharedString {
        SharedString::from_shared(self.listeners.name())
    }

    fn master(&self, leads: bool) {
        gauge!("leader_election_master_status", "name" => self.name()).set(f64::from(u8::from(leads)));
    }

    fn counter(&self, counted: &'static str) -> Counter {
        counter!(counted, "name" => self.name())
    }
}

impl Drop for Meters {
    fn drop(&mut self) {
        // If the run's future is dropped within a term, the term is counted as ended here.
        self.term_ended(&TermEndReason::Cancelled);
        self.ambiguous_writes.end(&self.name());
    }
}

/// The metrics of a session. Its locks have metrics of their own.
#[cfg(feature = "sessions")]
#[derive(Debug)]
pub(crate) struct SessionMeters {
    name: SharedString,
    locks: Gauge,
    sessions: Gauge,
    takeovers: Counter,
    lease: LeaseMeters,
    ambiguous_writes: AmbiguousWrites,
}

#[cfg(feature = "sessions")]
impl SessionMeters {
    pub(crate) fn new(name: &str) -> Self {
        let name = SharedString::from_shared(name.into());
        let (locks, sessions) = ("leader_election_session_locks", "leader_election_sessions");
        counter!(DUPLICATE_IDENTITIES, "name" => name.clone()).increment(0);
        Self {
            locks: gauge!(locks, "name" => name.clone()),
            sessions: gauge!(sessions, "name" => name.clone()),
            takeovers: counter!("leader_election_session_takeovers_total", "name" => name.clone()),
            lease: LeaseMeters::new(&name),
            ambiguous_writes: AmbiguousWrites::new(&name),
            name,
        }
    }

    /// Sets the number of locks that this session leads.
    pub(crate) fn leads(&self, locks: usize) {
        self.locks.set(locks as f64);
    }

    /// Sets the number of sessions that are known to be alive.
    pub(crate) fn sees(&self, sessions: usize) {
        self.sessions.set(sessions as f64);
    }

    /// Sets the numbers of locks with queued requests, by kind.
    pub(crate) fn works(&self, taking: usize, handing_over: usize, waiting: usize) {
        for (state, locks) in [("taking", taking), ("handing_over", handing_over), ("waiting", waiting)] {
            gauge!("leader_election_session_work", "name" => self.name.clone(), "state" => state).set(locks as f64);
        }
    }

    /// Counts a lock that was taken over from another session, which had ended.
    pub(crate) fn took_over(&self) {
        self.takeovers.increment(1);
    }

    pub(crate) fn duplicate_identity(&self) {
        counter!(DUPLICATE_IDENTITIES, "name" => self.name.clone()).increment(1);
    }

    pub(crate) fn fact(&mut self, fact: &Fact) {
        self.ambiguous_writes.fact(|| self.name.clone(), fact);
    }

    /// Counts a request that is not about a lock.
    pub(crate) fn answered(&mut self, operation: Operation, answered: Answered) {
        self.lease.requests.count(|| self.name.clone(), operation, answered);
    }

    /// Measures a renewal of this session, if the request was one.
    pub(crate) fn answered_own(&mut self, now: LocalInstant, asked: &Asked, answered: Answered) {
        self.lease.renewals.answered(now, asked, answered, true);
    }
}

#[cfg(feature = "sessions")]
impl Drop for SessionMeters {
    fn drop(&mut self) {
        self.leads(0);
        self.sees(0);
        self.works(0, 0, 0);
        self.ambiguous_writes.end(&self.name);
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

    fn answered(&self, now: LocalInstant, asked: &Asked, answered: Answered, leads: bool) {
        if answered != Answered::Ok || !matches!(asked.operation, Operation::Create | Operation::Update) {
            return;
        }
        if let Some(time) = asked.renew_time() {
            self.last.set(time.timestamp_micros() as f64 / 1e6);
        }
        // An update by a follower is no renewal but a takeover.
        if leads && asked.operation == Operation::Update {
            self.duration.record(now.saturating_since(asked.sent_at));
        }
    }
}

/// Counters of the requests to the store. A list is enough, because an undisturbed elector has two or three.
#[derive(Debug, Default)]
struct Requests(Vec<(Operation, Answered, Counter)>);

impl Requests {
    fn count(&mut self, name: impl FnOnce() -> SharedString, operation: Operation, answered: Answered) {
        let known = self.0.iter().find(|(of, outcome, _)| (*of, *outcome) == (operation, answered));
        if let Some((_, _, counter)) = known {
            return counter.increment(1);
        }
        let counter = requests(&name(), operation, answered);
        counter.increment(1);
        // One by one, because a vector that grows by itself would allocate room for four.
        self.0.reserve_exact(1);
        self.0.push((operation, answered, counter));
    }
}

/// The number of writes whose outcome is still unknown.
#[derive(Debug)]
struct AmbiguousWrites(u32);

impl AmbiguousWrites {
    fn new(name: &SharedString) -> Self {
        for resolution in ["landed", "lost", "unknown"] {
            resolutions(name, resolution).increment(0);
        }
        Self(0)
    }

    fn fact(&mut self, name: impl FnOnce() -> SharedString, fact: &Fact) {
        match fact {
            Fact::Doubted => self.0 += 1,
            Fact::Resolved { committed } => {
                self.0 = self.0.saturating_sub(1);
                let resolution = if *committed { "landed" } else { "lost" };
                resolutions(&name(), resolution).increment(1);
            }
            _ => {}
        }
    }

    /// Counts the writes whose outcome is still unknown when the run ends.
    fn end(&self, name: &SharedString) {
        resolutions(name, "unknown").increment(self.0.into());
    }
}

fn requests(name: &SharedString, operation: Operation, answered: Answered) -> Counter {
    counter!(
        "leader_election_store_requests_total",
        "name" => name.clone(), "operation" => operation.name(), "outcome" => label(answered)
    )
}

fn resolutions(name: &SharedString, resolution: &'static str) -> Counter {
    counter!("leader_election_ambiguous_writes_total", "name" => name.clone(), "resolution" => resolution)
}

fn ends(name: &SharedString, reason: impl Into<SharedString>) -> Counter {
    counter!("leader_election_terms_ended_total", "name" => name.clone(), "reason" => reason.into())
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
