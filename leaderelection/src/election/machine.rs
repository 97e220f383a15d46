//! The state machine: its state, and the order of a step's actions.

use std::collections::VecDeque;
use std::sync::Arc;

use leaderelection_protocol::lease::{Lease, NoPermit, Stage};
use leaderelection_protocol::policy::failback_delay::FailbackDelay;
use leaderelection_protocol::policy::pacing::Pacing;
use leaderelection_protocol::policy::peer_feed::PeerFeed;
use leaderelection_protocol::policy::wait::Wait;
use leaderelection_protocol::record::Versioned;

use super::effect::{Effect, Fact, Request, Term, Write};
use super::input::{EntropySource, Input};
use super::rules::ElectionConfig;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;
use crate::store::Version;
use crate::term::{BeginReason, TermEndReason, WorkEnd};

/// An object that was read, or that one of our own writes has made.
pub(super) type Found = Versioned<LeaderElectionRecord>;

#[cfg(test)]
thread_local! {
    /// The number of steps that elections have taken on this thread.
    pub(crate) static STEPS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// One candidate's view of one lock.
///
/// The [`Lease`] decides whether a request may be sent and whether a term is valid. The rest is policy: it decides when
/// to send one, and no promise about leadership depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    pub(super) rules: Arc<ElectionConfig>,
    pub(super) lease: Lease<LeaderElectionRecord>,
    /// `true` from [`Input::Begin`] until [`Effect::Finished`].
    pub(super) runs: bool,
    pub(super) wait: Wait,
    /// The leader's messages about the term that the last read showed; `None` if there are none. Boxed, because most
    /// candidates have no peers.
    pub(super) peer_feed: Option<Box<PeerFeed>>,
    /// `true` if the object has to be read before anything is written.
    pub(super) must_read: bool,
    /// The ids of the writes whose outcome is unknown, because their answers were ambiguous.
    pub(super) doubts: Vec<String>,
    pub(super) pacing: Pacing,
    /// The leader in the last [`Fact::LeaderChanged`].
    pub(super) announced: Option<String>,
    /// Why the next term may begin: set by each attempt to acquire, used when the term starts.
    pub(super) begin_reason: Option<Box<BeginReason>>,
    /// How the current term's work has ended; `None` while the work runs, or if there is no term.
    pub(super) work_end: Option<WorkEnd>,
    /// `true` if the term ends when its work is complete.
    pub(super) ends_with_work: bool,
    /// The token of the ended term and the reason for its end, until its work and release are done.
    pub(super) ended: Option<Box<(u64, TermEndReason)>>,
    /// The moment at which the release is given up; `None` unless the lease is being released.
    pub(super) release_by: Option<LocalInstant>,
    /// The moment from which this leader's renewals reset the record's count of requests for the lease (rule 24).
    /// `None` without a term, or if the count was 0 when the term began.
    pub(super) forgets_at: Option<LocalInstant>,
    pub(super) failback_delay: FailbackDelay,
    /// `true` if this step's answer is a read that shows a leader whom this candidate is to ask for the lease.
    pub(super) may_ask: bool,
    /// `true` after the caller asked to stop: the candidate competes for no further term.
    pub(super) stop_asked: bool,
    pub(super) effects: VecDeque<Effect>,
}

impl Election {
    /// Creates a candidate that does not compete yet: see [`Input::Begin`].
    #[must_use]
    pub fn new(rules: impl Into<Arc<ElectionConfig>>) -> Self {
        let rules = rules.into();
        let lease = Lease::new(rules.identity.clone(), rules.limits(), rules.reclaim_own_identity);
        Self::of(lease, rules)
    }

    /// Creates a candidate for the one term of a session (rule S1).
    #[cfg(feature = "sessions")]
    pub(crate) fn of_session(id: Arc<str>, rules: ElectionConfig) -> Self {
        Self::of(Lease::of_session(id, rules.identity.clone(), rules.limits()), rules.into())
    }

    fn of(lease: Lease<LeaderElectionRecord>, rules: Arc<ElectionConfig>) -> Self {
        Self {
            rules,
            lease,
            runs: false,
            wait: Wait::default(),
            peer_feed: None,
            must_read: false,
            doubts: Vec::new(),
            pacing: Pacing::default(),
            announced: None,
            begin_reason: None,
            work_end: None,
            ends_with_work: false,
            ended: None,
            release_by: None,
            forgets_at: None,
            failback_delay: FailbackDelay::default(),
            may_ask: false,
            stop_asked: false,
            effects: VecDeque::new(),
        }
    }

    /// Takes one step. Before the driver waits for anything, it has to carry out all effects that [`next`](Self::next) returns.
    ///
    /// `now` never decreases from call to call. Randomness and wall time come from `draw`, and a step draws only as
    /// much as it needs.
    pub fn handle(&mut self, now: LocalInstant, input: Input, draw: &mut impl EntropySource) {
        #[cfg(test)]
        STEPS.set(STEPS.get() + 1);
        if !matches!(input, Input::Begin { .. }) {
            // An input that comes too late for its term must not prolong the term (rules 6 and 12).
            self.expire(now);
        }
        match input {
            Input::Begin { stand_back, ends_with_work, job } => {
                // Old effects may be left from a driver that was dropped. They belong to an earlier term.
                self.effects.clear();
                self.lease.begin(now, job);
                self.reset(now);
                (self.runs, self.stop_asked, self.ends_with_work) = (true, false, ends_with_work);
                // For this time, the candidate writes nothing, so that others go first.
                self.pacing.begin(now, stand_back);
            }
            Input::Tick => {}
            Input::Answer(answer) => self.on_answer(now, answer, draw.jitter()),
            Input::Message(message) => self.on_message(now, message),
            Input::Command(command) => self.on_command(now, command),
            Input::WorkEnded(end) => self.on_work_ended(now, end),
            Input::Reconfigure(rules) => self.reconfigure(now, rules, draw.jitter()),
            Input::Expired => self.end_term(now, TermEndReason::RenewDeadline),
        }
        // Some inputs tick the lease a second time in this step. With a stop margin of 0, the first tick drops the
        // work, and the second one abandons it.
        self.follow_lease(now, || TermEndReason::RenewDeadline);
        self.conclude_if_work_ended(now);
        // This comes after the input is handled: an answer may show that the lease is lost, and then nothing is left to hand over.
        self.hand_over_if_asked(now);
        self.finish_if_job_is_done(now);
        self.send(now, draw);
    }

    /// Returns the next effect, oldest first.
    #[allow(clippy::should_implement_trait, reason = "an election is no iterator: a later step has more effects")]
    pub fn next(&mut self) -> Option<Effect> {
        let next = self.effects.pop_front();
        if next.is_none() {
            // Most steps have one effect, and only the start of a term has several. So room for one is kept.
            self.effects.shrink_to(1);
        }
        next
    }

    /// The moment for the next [`Input::Tick`]; `None` if only another input can change the state.
    #[must_use]
    pub fn wake_at(&self) -> Option<LocalInstant> {
        if !self.runs {
            return None;
        }
        let send = if self.lease.is_busy() { None } else { self.next_send() };
        [self.lease.deadline(), self.release_by, send].into_iter().flatten().min()
    }

    /// The term that is valid at `now`, if any. Every call compares the deadline with `now`; there is no flag (rule 4).
    #[must_use]
    pub fn leading(&self, now: LocalInstant) -> Option<Term> {
        self.lease.term(now).map(Term::from)
    }

    /// The object as the store last showed it; `None` if no object exists, or before the first read.
    #[must_use]
    pub fn observed(&self) -> Option<(&LeaderElectionRecord, &Version)> {
        let found = self.found()?;
        Some((&found.record, &found.version))
    }

    /// Returns the same as [`observed`](Self::observed), shared.
    pub(crate) fn share_observed(&self) -> Option<(Arc<LeaderElectionRecord>, Version)> {
        let found = self.found()?;
        Some((Arc::clone(&found.record), found.version.clone()))
    }

    pub(super) fn found(&self) -> Option<&Found> {
        self.lease.own().or_else(|| self.lease.watch().found())
    }

    /// Returns `true` if a peer's messages may count.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.competes()
    }

    /// The lease. Only a step changes it.
    #[cfg(feature = "sessions")]
    pub(crate) fn lease(&self) -> &Lease<LeaderElectionRecord> {
        &self.lease
    }

    /// Returns `true` if nothing is left to do before the next [`Input::Begin`].
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.runs
    }

    /// Returns `true` while this candidate neither holds the lease nor has to end an earlier term.
    pub(super) fn competes(&self) -> bool {
        self.runs && self.lease.stage() == Stage::Candidate
    }

    /// Sends the request that is due, unless another one is in flight.
    fn send(&mut self, now: LocalInstant, draw: &mut impl EntropySource) {
        if !self.runs || self.lease.is_busy() {
            return;
        }
        if self.ask_for_lease(now) {
            // The request for the lease is in flight now.
            return;
        }
        let Some(due) = self.next_send().filter(|due| now >= *due) else { return };
        self.pacing.sent(now);
        // If no write is due and permitted, a read is sent instead.
        if !self.write(now, draw) && self.lease.begin_read().is_ok() {
            // Rule 24: a read that is late by a whole lease shows that the process was frozen.
            if now >= due + self.rules.lease_duration {
                self.restart_failback_delay();
            }
            if let Some(peer_feed) = &mut self.peer_feed {
                peer_feed.asked();
            }
            self.effects.push_back(Effect::Send(Request::Read));
        }
    }

    /// Sends the write that is due, if there is one. Returns `false` if the candidate has to read.
    fn write(&mut self, now: LocalInstant, draw: &mut impl EntropySource) -> bool {
        let permit = match self.lease.stage() {
            _ if self.must_read => return false,
            Stage::Candidate if self.takeover_at().is_some_and(|at| now >= at) => {
                self.begin_reason = Some(Box::new(self.acquire_reason()));
                self.lease.may_acquire(now)
            }
            Stage::Won | Stage::Leading => self.lease.may_renew(now),
            Stage::Over => self.lease.may_release(now),
            _ => return false,
        };
        let permit = match permit {
            Ok(permit) => permit,
            // This session can no longer begin its only term, so no read is of use either.
            Err(NoPermit::Spent) => {
                self.give_up(now);
                return true;
            }
            Err(_) => return false,
        };
        let stamp = draw.stamp();
        let forgets = self.forgets_at.is_some_and(|forgets_at| now >= forgets_at);
        let (decoration, left_out) = self.rules.decoration(&permit, &stamp, forgets);
        let write = permit.write(|| stamp.write_id, decoration);
        if !left_out.is_empty() {
            self.emit(Fact::LeftOut { fields: left_out });
        }
        self.effects.push_back(Effect::Send(Request::Write(Write::from(write))));
        true
    }

    /// The moment for the next request, if no request is in flight.
    fn next_send(&self) -> Option<LocalInstant> {
        let (stage, term) = (self.lease.stage(), self.lease.own_term());
        // `Pacing::soonest` is the moment from which any request is allowed. `Pacing::write` sends nothing, either: it
        // returns the moment for a write, which also waits for the pause after a failed write.
        let due = match (stage, term) {
            (stage, _) if stage.awaits_work() => return None,
            _ if self.must_read => self.pacing.soonest(),
            (Stage::Candidate, _) => {
                self.takeover_at().map_or(self.pacing.next_poll(), |at| at.min(self.pacing.next_poll()))
            }
            (Stage::Leading, Some(term)) => self.pacing.write(term.sent_at() + self.rules.retry_period),
            // First, a read has to show whether there is anything to release.
            (Stage::Over, None) => self.pacing.soonest(),
            // The first renewal of a lease that was won too late, or a release: as soon as a write is allowed.
            _ => self.pacing.write(LocalInstant::default()),
        };
        // Rule 6: the last moment for a request that is certain to be answered, or to time out, within the window. A
        // leader follows a `Retry-After` no longer than until then.
        let last_chance =
            term.filter(|_| stage == Stage::Leading).map(|term| term.valid_until() - self.rules.request_timeout);
        Some(due.max(self.pacing.silent_until(last_chance)))
    }

    pub(super) fn emit(&mut self, fact: Fact) {
        self.effects.push_back(Effect::Fact(fact));
    }

    pub(super) fn announce(&mut self, holder: &str) {
        let leader = (!holder.is_empty()).then_some(holder);
        if self.announced.as_deref() != leader {
            self.announced = leader.map(str::to_owned);
            self.emit(Fact::LeaderChanged { leader: self.announced.clone() });
        }
    }
}
