//! The protocol as a pure state machine: no I/O, no clock, no randomness of its own, no async.
//!
//! Its driver asks [`Election::poll`] what to send, sends it, and hands the answer to
//! [`Election::on_answer`]; it calls `poll` again at [`Election::next_wake`] and after every answer, and
//! takes the [`Event`]s after every call. [`DefaultLeaderElector`](crate::DefaultLeaderElector) is such a
//! driver; tests and model checkers are others.
//!
//! Numbers in comments are those of the rules in docs/protocol.md.

mod attempts;
mod candidate;
mod failure;
mod holder;
mod reason;
mod types;
mod visit;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::clock::LocalInstant;
use crate::lock::VersionedRecord;
use crate::record::LeaderElectionRecord;
use crate::store::Version;

use attempts::{Attempt, Attempts, Purpose};
pub use reason::{BeginReason, EndReason};
pub use types::{Answer, Event, Failure, Jitter, Request, Rules, Stamp, Term};
pub use visit::Visitor;

/// One candidate's view of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    rules: Arc<Rules>,
    phase: Phase,
    /// What the object last showed to us as a candidate.
    sight: Option<Sight>,
    /// The highest token seen or written. A new term's is one more.
    highest_token: Option<u64>,
    in_flight: Option<InFlight>,
    /// Writes of ours without a good answer: each may have landed, or may land yet.
    attempts: Attempts,
    /// Consecutive failures, the exponent of the back-off.
    failures: u8,
    /// Nothing is sent before.
    hold_off: LocalInstant,
    /// When a candidate reads next.
    next_read: LocalInstant,
    /// Nothing is written before: after a failed write, or while standing back.
    write_after: LocalInstant,
    /// Until then the store asked us not to come again.
    asked_until: LocalInstant,
    announced: Option<String>,
    clash_reported: bool,
    events: VecDeque<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Not taking part.
    Idle,
    /// A candidate.
    Following,
    /// The record names us, by a write of ours that is known to have landed.
    Holding(Hold),
    /// Not leading any more; the work may still be winding down. Sends nothing.
    Stopping { held: Option<Hold>, stop_by: LocalInstant },
    /// The work is over; giving the lease back, if it turns out to be ours.
    Releasing { held: Option<Hold>, give_up_at: LocalInstant },
}

/// A lease that is ours: the last write of this term that is known to have landed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hold {
    token: u64,
    record: LeaderElectionRecord,
    version: Version,
    sent_at: LocalInstant,
    /// Whether the term was announced as begun. Until then its window may still open.
    started: bool,
}

/// What the object showed when it last changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sight {
    found: Option<VersionedRecord>,
    /// From when on a new term may begin, if the object does not change.
    free_at: LocalInstant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum InFlight {
    Read,
    Write { attempt: Attempt, record: LeaderElectionRecord },
}

impl Election {
    /// A candidate that does not take part yet: see [`begin`](Self::begin).
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules: Arc::new(rules),
            phase: Phase::Idle,
            sight: None,
            highest_token: None,
            in_flight: None,
            attempts: Attempts::default(),
            failures: 0,
            hold_off: LocalInstant::default(),
            next_read: LocalInstant::default(),
            write_after: LocalInstant::default(),
            asked_until: LocalInstant::default(),
            announced: None,
            clash_reported: false,
            events: VecDeque::new(),
        }
    }

    /// Starts to compete for one term.
    ///
    /// A term that is still open, because its driver was dropped, is abandoned: its lease runs out or is
    /// taken over by us as a new term, and no answer can revive it.
    pub fn begin(&mut self, now: LocalInstant) {
        self.rest(now);
        self.phase = Phase::Following;
        self.next_read = now;
    }

    /// Lets the others begin a term, but not us, before `until`. Reading goes on.
    pub fn stand_back_until(&mut self, until: LocalInstant) {
        self.write_after = self.write_after.max(until);
    }

    /// What to send now, if anything. At most one request is in flight.
    ///
    /// `stamp` is called if and only if the request is a write.
    pub fn poll(&mut self, now: LocalInstant, stamp: impl FnOnce() -> Stamp) -> Option<Request> {
        self.end_if_overdue(now);
        // Not as soon as the answer shows it: what it says about the lease must be known first.
        self.hand_over_if_asked();
        if self.in_flight.is_some() || now < self.next_send()? {
            return None;
        }
        if self.wants_read(now) {
            self.in_flight = Some(InFlight::Read);
            return Some(Request::Read);
        }
        let stamp = stamp();
        let (purpose, token, record, expected) = match &self.phase {
            Phase::Holding(hold) => {
                (Purpose::Renew, hold.token, hold.renewed(&self.rules, &stamp), Some(hold.version.clone()))
            }
            Phase::Releasing { held: Some(hold), .. } => {
                (Purpose::Release, hold.token, hold.released(&stamp), Some(hold.version.clone()))
            }
            _ => {
                let (token, record, expected) = self.candidacy(&stamp);
                (Purpose::Acquire, token, record, expected)
            }
        };
        let attempt = Attempt { write_id: stamp.write_id, token, sent_at: now, purpose };
        self.in_flight = Some(InFlight::Write { attempt, record: record.clone() });
        Some(match expected {
            Some(expected) => Request::Update { record, expected },
            None => Request::Create { record },
        })
    }

    /// Takes the answer to the request in flight. An answer to anything else is ignored.
    pub fn on_answer(&mut self, now: LocalInstant, answer: Answer, jitter: Jitter) {
        // An answer that comes too late for its term must not prolong it (rules 6 and 12).
        self.end_if_overdue(now);
        match (self.in_flight.take(), answer) {
            (Some(InFlight::Read), Answer::Read(Ok(found))) => {
                self.attempts.must_read = false;
                self.on_read(now, found, jitter);
            }
            (Some(InFlight::Read), Answer::Read(Err(failure))) => self.on_read_failure(now, failure, jitter),
            (Some(InFlight::Write { attempt, record }), Answer::Written(Ok(version))) => {
                self.failures = 0;
                self.on_landed(now, attempt, VersionedRecord { record, version });
            }
            (Some(InFlight::Write { attempt, .. }), Answer::Written(Err(failure))) => {
                self.on_write_failure(now, attempt, failure, jitter);
            }
            (in_flight, _) => self.in_flight = in_flight,
        }
    }

    /// Ends the candidacy or the term. Leadership is over when this returns; nothing has been sent.
    pub fn stop(&mut self, now: LocalInstant, reason: EndReason) {
        self.end_if_overdue(now);
        match &self.phase {
            Phase::Following if self.may_have_acquired() => {
                self.phase = Phase::Stopping { held: None, stop_by: now };
            }
            Phase::Following => self.rest(now),
            Phase::Holding(_) => self.lose(reason, true),
            Phase::Idle | Phase::Stopping { .. } | Phase::Releasing { .. } => {}
        }
    }

    /// Tells that the term's work has ended, and whether to give the lease back (rules 8 and 9).
    pub fn work_stopped(&mut self, now: LocalInstant, release: bool) {
        let Phase::Stopping { held, .. } = &mut self.phase else { return };
        let held = held.take();
        let since = held.as_ref().map(|hold| hold.sent_at).or_else(|| self.last_acquire_sent());
        match since {
            Some(sent_at) if release => {
                // Without a known version the store must say whether there is anything to give back.
                // With one, writing over it also fences off a renewal that is still under way.
                self.attempts.must_read = held.is_none();
                self.hold_off = self.asked_until.max(now);
                self.write_after = now;
                self.failures = 0;
                let give_up_at = sent_at + self.rules.lease_duration;
                self.phase = Phase::Releasing { held, give_up_at };
                self.end_if_overdue(now);
            }
            _ => {
                self.phase = Phase::Stopping { held, stop_by: now };
                self.rest(now);
            }
        }
    }

    /// The term we lead at `now`, if any: a comparison with the deadline, never a flag (rule 4).
    #[must_use]
    pub fn leading(&self, now: LocalInstant) -> Option<Term> {
        match &self.phase {
            Phase::Holding(hold) if hold.started && now < self.valid_until(hold) => {
                Some(Term { fencing_token: hold.token, sent_at: hold.sent_at, valid_until: self.valid_until(hold) })
            }
            _ => None,
        }
    }

    /// Whether there is nothing left to do before the next [`begin`](Self::begin).
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// Whether the lease is being given back.
    #[must_use]
    pub fn is_releasing(&self) -> bool {
        matches!(self.phase, Phase::Releasing { .. })
    }

    /// When the term is over, the moment by which its work must have stopped (rule 8).
    #[must_use]
    pub fn stop_by(&self) -> Option<LocalInstant> {
        match self.phase {
            Phase::Stopping { stop_by, .. } => Some(stop_by),
            _ => None,
        }
    }

    /// When to call [`poll`](Self::poll) next; `None` if only an answer or a command changes anything.
    #[must_use]
    pub fn next_wake(&self) -> Option<LocalInstant> {
        let deadline = match &self.phase {
            Phase::Holding(hold) if hold.started => Some(self.valid_until(hold)),
            Phase::Stopping { stop_by, .. } => Some(*stop_by),
            Phase::Releasing { give_up_at, .. } => Some(*give_up_at),
            _ => None,
        };
        let send = if self.in_flight.is_none() { self.next_send() } else { None };
        deadline.into_iter().chain(send).min()
    }

    /// What changed, oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When something is to be sent, if nothing is in flight.
    fn next_send(&self) -> Option<LocalInstant> {
        let wanted = match &self.phase {
            Phase::Idle | Phase::Stopping { .. } => return None,
            _ if self.attempts.must_read => self.hold_off,
            Phase::Following => self.next_read.min(self.takeover_at().unwrap_or(self.next_read)),
            Phase::Holding(hold) if hold.started => self.write_after.max(hold.sent_at + self.rules.retry_period),
            Phase::Holding(_) | Phase::Releasing { .. } => self.write_after,
        };
        Some(wanted.max(self.hold_off))
    }

    fn wants_read(&self, now: LocalInstant) -> bool {
        match self.phase {
            _ if self.attempts.must_read => true,
            Phase::Following => self.takeover_at().is_none_or(|at| now < at),
            Phase::Releasing { ref held, .. } => held.is_none(),
            _ => false,
        }
    }

    /// Rules 4 and 9: ends what has outlived its time.
    fn end_if_overdue(&mut self, now: LocalInstant) {
        match &self.phase {
            Phase::Holding(hold) if hold.started && now >= self.valid_until(hold) => {
                self.lose(EndReason::RenewDeadline, true);
            }
            Phase::Releasing { give_up_at, .. } if now >= *give_up_at => {
                self.events.push_back(Event::ReleaseGivenUp);
                self.rest(now);
            }
            _ => {}
        }
    }

    /// Forgets every attempt of what has ended (rule 6), and remembers what the object last was.
    fn rest(&mut self, now: LocalInstant) {
        self.attempts.clear();
        if let Some(InFlight::Write { attempt, .. }) = self.in_flight.take() {
            self.attempts.give_up(attempt);
        }
        self.failures = 0;
        self.hold_off = self.asked_until.max(now);
        self.write_after = now;
        let held = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Holding(hold) => Some(hold),
            Phase::Stopping { held, .. } | Phase::Releasing { held, .. } => held,
            Phase::Idle | Phase::Following => None,
        };
        if let Some(Hold { record, version, .. }) = held {
            // Nobody leads by this version: we wrote it, and have stopped.
            let free_at = now + self.courtesy(&record);
            self.sight = Some(Sight { found: Some(VersionedRecord { record, version }), free_at });
        }
    }

    fn valid_until(&self, hold: &Hold) -> LocalInstant {
        hold.sent_at + self.rules.renew_deadline
    }

    fn on_read(&mut self, now: LocalInstant, found: Option<VersionedRecord>, jitter: Jitter) {
        if let Some(found) = &found {
            self.saw_token(found.record.leader_transitions);
            if let Some(attempt) = self.attempts.written_by_us(&found.record) {
                self.failures = 0;
                // The pause was for a write that failed. This one landed, and its window may be about to close.
                self.write_after = self.write_after.min(self.asked_until);
                return self.on_landed(now, attempt, found.clone());
            }
        }
        match self.phase {
            Phase::Following => self.follow(now, found, jitter),
            Phase::Idle => {}
            _ => self.on_read_while_holding(now, found, jitter),
        }
    }

    /// A write of ours landed: the record is ours, and no other attempt can land any more.
    fn on_landed(&mut self, now: LocalInstant, attempt: Attempt, written: VersionedRecord) {
        self.attempts.clear();
        self.saw_token(attempt.token);
        if attempt.purpose == Purpose::Release {
            return self.on_released(now, written);
        }
        let VersionedRecord { record, version } = written;
        let hold = Hold { token: attempt.token, record, version, sent_at: attempt.sent_at, started: false };
        match &mut self.phase {
            Phase::Idle => {}
            Phase::Following => {
                self.events.push_back(Event::Acquired { fencing_token: hold.token, reason: self.opening() });
                self.sight = None;
                self.phase = Phase::Holding(hold);
            }
            Phase::Holding(held) => held.renew(hold),
            Phase::Stopping { held, .. } | Phase::Releasing { held, .. } => Hold::replace(held, hold),
        }
        self.start_if_valid(now);
    }

    fn saw_token(&mut self, token: u64) {
        self.highest_token = self.highest_token.max(Some(token));
    }

    fn announce(&mut self, holder: &str) {
        let leader = (!holder.is_empty()).then_some(holder);
        if self.announced.as_deref() != leader {
            self.announced = leader.map(str::to_owned);
            self.events.push_back(Event::LeaderChanged { leader: self.announced.clone() });
        }
    }
}
