//! The state machine: the actions of a step, in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::attempts::{Attempt, Attempts};
use super::effect::{Effect, Fact, Purpose, Request, Term, Write};
use super::hearing::Hearing;
use super::input::{Answer, Draw, Input, Jitter};
use super::job::Job;
use super::limits::Limits;
use super::pacing::Pacing;
use super::phase::{Hold, InFlight, Phase, Seen, Sight};
use super::rules::Rules;
use super::settling::Settling;
use super::shadow::Shadow;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;
use crate::store::{MAX_BODY_BYTES, Version};
use crate::term::{EndReason, Ending, RunOutcome, WorkEnd};

/// One candidate's view of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    pub(super) rules: Arc<Rules>,
    pub(super) phase: Phase,
    /// The object as this candidate last saw it while it did not lead.
    pub(super) sight: Option<Sight>,
    /// The messages of the leader of the term that the last read showed; `None` without any. In a box, because most
    /// candidates have no peers.
    pub(super) hearing: Option<Box<Hearing>>,
    /// The highest token seen or written. The token of a new term is larger by one.
    pub(super) highest_token: Option<u64>,
    pub(super) in_flight: Option<InFlight>,
    /// The writes without a positive answer. Each may have landed, or may still land.
    pub(super) attempts: Attempts,
    pub(super) pacing: Pacing,
    pub(super) announced: Option<String>,
    /// The end of the current term's work; `None` while the work runs, or if there is no term.
    pub(super) work_end: Option<WorkEnd>,
    pub(super) ends_with_work: bool,
    pub(super) job: Option<Job>,
    pub(super) settling: Settling,
    /// `true` if the answer of this step is a read, on which a request for the lease may be based.
    pub(super) may_ask: bool,
    /// `true` after the caller asked to stop, so that the candidate competes for no further term.
    pub(super) stop_asked: bool,
    pub(super) effects: VecDeque<Effect>,
    pub(super) shadow: Shadow,
}

impl Election {
    /// Creates a candidate that does not compete yet: see [`Input::Begin`].
    #[must_use]
    pub fn new(rules: impl Into<Arc<Rules>>) -> Self {
        let rules = rules.into();
        Self {
            shadow: Shadow::new(&rules),
            rules,
            phase: Phase::Idle,
            sight: None,
            hearing: None,
            highest_token: None,
            in_flight: None,
            attempts: Attempts::default(),
            pacing: Pacing::default(),
            announced: None,
            work_end: None,
            ends_with_work: false,
            job: None,
            settling: Settling::default(),
            may_ask: false,
            stop_asked: false,
            effects: VecDeque::new(),
        }
    }

    /// Takes one step. Before the driver waits for anything, it has to carry out all effects, which
    /// [`next`](Self::next) returns one by one.
    ///
    /// `now` never decreases from call to call. Randomness and wall time come from `draw`, and a step draws only as
    /// much as it needs.
    pub fn handle(&mut self, now: LocalInstant, input: Input, draw: &mut impl Draw) {
        self.shadow.step(now);
        let first = if let Input::Begin { .. } = input { 0 } else { self.effects.len() };
        if !matches!(input, Input::Begin { .. }) {
            // An input that comes too late for its term must not prolong the term (rules 6 and 12).
            self.expire(now);
        }
        match input {
            Input::Begin { stand_back, ends_with_work, job } => {
                // The effects of a term that was left open are not reported any more.
                self.effects.clear();
                self.rest(now);
                self.phase = Phase::Following;
                self.pacing.begin(now, stand_back);
                (self.ends_with_work, self.stop_asked) = (ends_with_work, false);
                self.shadow.begin(job.as_ref());
                self.job = job.map(Job::new);
            }
            Input::Tick => {}
            Input::Answer(answer) => self.on_answer(now, answer, draw.jitter()),
            Input::Heard(heard) => self.on_heard(now, heard),
            Input::Command(command) => self.on_command(now, command),
            Input::WorkEnded(end) => self.on_work_ended(end),
            Input::Reconfigure(rules) => self.take_rules(now, rules, draw.jitter()),
            Input::Expired => self.end_term(EndReason::RenewDeadline, true),
        }
        self.conclude_if_work_ended(now);
        // This comes after the answer is handled, because the answer may first decide about the lease.
        self.hand_over_if_asked(now);
        // A record may be known before the candidacy, or from a read as a holder, so no single kind of read decides this.
        self.finish_if_job_is_done(now);
        self.send(now, draw);
        let leading = self.leading(now);
        self.shadow.compare(self.effects.iter().skip(first), leading);
    }

    /// Returns the next effect, oldest first.
    #[allow(clippy::should_implement_trait, reason = "an election is no iterator: a later step has more effects")]
    pub fn next(&mut self) -> Option<Effect> {
        let next = self.effects.pop_front();
        if next.is_none() {
            // A renewal or a look has one effect at a time, and the beginning of a term has several.
            self.effects.shrink_to(1);
        }
        next
    }

    /// The moment for the next [`Input::Tick`]; `None` if only another input can change the state.
    #[must_use]
    pub fn wake_at(&self) -> Option<LocalInstant> {
        let send = if self.in_flight.is_none() { self.next_send() } else { None };
        self.deadline().into_iter().chain(send).min()
    }

    /// The moment at which time alone ends something: the term, the patience with its work, or the tries to release.
    fn deadline(&self) -> Option<LocalInstant> {
        match &self.phase {
            Phase::Leading(hold) => Some(hold.valid_until()),
            Phase::Ending { ending, .. } => ending.deadline(),
            Phase::Idle | Phase::Following | Phase::Won { .. } => None,
        }
    }

    /// The term that is valid at `now`, if any: a comparison with the deadline, never a flag (rule 4).
    #[must_use]
    pub fn leading(&self, now: LocalInstant) -> Option<Term> {
        match &self.phase {
            Phase::Leading(hold) if now < hold.valid_until() => Some(self.term(hold)),
            _ => None,
        }
    }

    /// The object as the store last showed it; `None` if no object exists, or before the first read.
    #[must_use]
    pub fn observed(&self) -> Option<(&LeaderElectionRecord, &Version)> {
        let seen = self.seen()?;
        Some((&seen.record, &seen.version))
    }

    /// A share of what [`observed`](Self::observed) returns.
    pub(crate) fn share_observed(&self) -> Option<(Arc<LeaderElectionRecord>, Version)> {
        let seen = self.seen()?;
        Some((Arc::clone(&seen.record), seen.version.clone()))
    }

    fn seen(&self) -> Option<&Seen> {
        match self.phase.hold() {
            Some(hold) => Some(&hold.seen),
            None => self.sight.as_ref()?.found.as_ref(),
        }
    }

    /// Returns `true` if a peer's messages may count.
    #[must_use]
    pub fn listens(&self) -> bool {
        matches!(self.phase, Phase::Following)
    }

    /// Returns `true` if nothing is left to do before the next [`Input::Begin`].
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    fn on_answer(&mut self, now: LocalInstant, answer: Answer, jitter: Jitter) {
        self.shadow.answer(&answer, &self.rules);
        // The store's wish counts even if nothing waits for this answer any more, because the term has just ended.
        if let Some(failure) = answer.failure() {
            self.pacing.obey(&self.rules, now, failure);
        } else {
            self.pacing.answered();
        }
        match (self.in_flight.take(), answer) {
            (Some(InFlight::Read), Answer::Read(Ok(found))) => {
                self.attempts.must_read = false;
                let age = self.rules.certain_age(found.as_ref().and_then(|found| found.age));
                self.on_read(now, found.map(Seen::from), age, jitter);
            }
            (Some(InFlight::Read), Answer::Read(Err(failure))) => self.on_read_failure(now, failure, jitter),
            (Some(InFlight::Write { attempt, record }), Answer::Written(Ok(version))) => {
                self.on_landed(now, attempt, Seen { record, version });
            }
            (Some(InFlight::Write { attempt, record }), Answer::Written(Err(failure))) => {
                self.on_write_failure(now, (attempt, record), failure, jitter);
            }
            (Some(InFlight::Ask(record)), Answer::Written(answer)) => {
                self.on_asked(now, record, answer, jitter);
            }
            (in_flight, _) => self.in_flight = in_flight,
        }
    }

    fn on_read(&mut self, now: LocalInstant, found: Option<Seen>, age: Duration, jitter: Jitter) {
        if let Some(found) = &found
            && let Some(attempt) = self.attempts.written_by_us(&found.record)
        {
            self.pacing.write_at_once(now);
            return self.on_landed(now, attempt, found.clone());
        }
        if let (Some(job), Some(found)) = (&mut self.job, &found) {
            job.saw(&found.record);
        }
        match self.phase {
            Phase::Following => self.follow(now, found, age, jitter),
            Phase::Idle => {}
            _ => self.on_read_while_holding(now, found, age, jitter),
        }
    }

    /// Takes a write that is known to have landed. The record is now this candidate's, and no other attempt can land.
    fn on_landed(&mut self, now: LocalInstant, attempt: Attempt, written: Seen) {
        for other in self.attempts.clear() {
            self.tell(Fact::Resolved { landed: other.record.write_id == written.record.write_id });
        }
        self.pacing.made_progress();
        self.saw_token(attempt.token);
        if attempt.purpose == Purpose::Release {
            return self.on_released(now, written);
        }
        let limits = attempt.limits.min(Limits::from(&*self.rules));
        let forgets_at = match self.phase.hold() {
            Some(hold) => hold.forgets_at,
            None => (written.record.take_backs > 0).then(|| now + self.rules.forgets_after()),
        };
        let hold = Hold { token: attempt.token, seen: written, sent_at: attempt.sent_at, limits, forgets_at };
        let term = self.term(&hold);
        match &mut self.phase {
            Phase::Idle => {}
            Phase::Following => {
                self.tell(Fact::Acquired { fencing_token: hold.token });
                let reason = self.opening();
                (self.sight, self.hearing) = (None, None);
                self.unsettle();
                self.phase = Phase::Won { hold, reason };
            }
            Phase::Won { hold: held, .. } => *held = hold,
            Phase::Leading(held) => {
                *held = hold;
                self.effects.push_back(Effect::Extend(term));
            }
            Phase::Ending { held, .. } => Hold::replace(held, hold),
        }
        self.start_if_valid(now);
    }

    /// Sends the request that is due, if any. At most one request is in flight.
    fn send(&mut self, now: LocalInstant, draw: &mut impl Draw) {
        if self.in_flight.is_some() || self.ask_for_lease(now) {
            return;
        }
        let Some(due) = self.next_send().filter(|due| now >= *due) else { return };
        self.pacing.sent(now);
        if self.wants_read(now) {
            if now >= due + self.rules.lease_duration {
                self.unsettle();
            }
            self.in_flight = Some(InFlight::Read);
            if let Some(hearing) = &mut self.hearing {
                hearing.asked();
            }
            self.effects.push_back(Effect::Send(Request::Look));
            return;
        }
        let stamp = draw.stamp();
        let (purpose, token, record, expected) = match &self.phase {
            Phase::Won { hold, .. } | Phase::Leading(hold) => {
                (Purpose::Renew, hold.token, hold.renewed(now, &self.rules, stamp), Some(hold.seen.version.clone()))
            }
            Phase::Ending { held: Some(hold), .. } => {
                let mut record = hold.released(stamp);
                if let Some(job) = &self.job {
                    job.mark(&mut record);
                }
                (Purpose::Release, hold.token, record, Some(hold.seen.version.clone()))
            }
            _ => {
                let (token, mut record, expected) = self.candidacy(stamp);
                if record.unknown.size() > MAX_BODY_BYTES / 2 {
                    let fields = record.make_room();
                    if !fields.is_empty() {
                        self.tell(Fact::LeftOut { fields });
                    }
                }
                (Purpose::Acquire, token, record, expected)
            }
        };
        // The term is valid from this moment, before the request is sent (rule 4).
        let attempt = Attempt { token, sent_at: now, purpose, limits: Limits::from(&*self.rules) };
        let record = Arc::new(record);
        self.in_flight = Some(InFlight::Write { attempt, record: Arc::clone(&record) });
        self.effects.push_back(Effect::Send(Request::Write(Write { purpose, record, expected })));
    }

    /// The moment for the next request, if no request is in flight.
    fn next_send(&self) -> Option<LocalInstant> {
        let due = match &self.phase {
            Phase::Idle => return None,
            Phase::Ending { ending, .. } if !ending.is_release() => return None,
            _ if self.attempts.must_read => self.pacing.soonest(),
            Phase::Following => self.takeover_at().map_or(self.pacing.look(), |at| at.min(self.pacing.look())),
            Phase::Leading(hold) => self.pacing.write(hold.sent_at + self.rules.retry_period),
            Phase::Won { .. } | Phase::Ending { .. } => self.pacing.write(LocalInstant::default()),
        };
        let last_chance = match &self.phase {
            Phase::Leading(hold) => Some(hold.last_chance(&self.rules)),
            _ => None,
        };
        Some(due.max(self.pacing.silent_until(last_chance)))
    }

    fn wants_read(&self, now: LocalInstant) -> bool {
        match &self.phase {
            _ if self.attempts.must_read => true,
            Phase::Following => self.takeover_at().is_none_or(|at| now < at),
            Phase::Ending { held, .. } => held.is_none(),
            _ => false,
        }
    }

    /// Ends the candidacy, and tells the caller. If the term was over before its work could begin, the candidate
    /// follows again instead.
    pub(super) fn finish(&mut self, now: LocalInstant) {
        let ending = if let Phase::Ending { ending, .. } = self.rest(now) { Some(ending) } else { None };
        let fencing_token = ending.as_deref().and_then(Ending::fencing_token);
        let work = self.work_end.take();
        let outcome = if fencing_token.is_some() && self.job.as_ref().is_some_and(Job::is_marked) {
            Some(RunOutcome::JobDone { fencing_token })
        } else {
            ending.map_or(Some(RunOutcome::NeverLed), |ending| ending.outcome(work, self.stop_asked))
        };
        if let Some(outcome) = outcome {
            self.effects.push_back(Effect::Finished(outcome));
        } else {
            self.phase = Phase::Following;
            self.pacing.begin(now, Duration::ZERO);
        }
    }

    /// Forgets every attempt of the ended candidacy (rule 6), and remembers the last known state of the object. Returns the
    /// phase that is over.
    pub(super) fn rest(&mut self, now: LocalInstant) -> Phase {
        self.shadow.give_up();
        // The outcome of these attempts will never be known.
        self.attempts.clear().for_each(drop);
        (self.in_flight, self.hearing) = (None, None);
        self.unsettle();
        self.pacing.restart(now);
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        if let Some(Hold { seen, .. }) = phase.hold() {
            // No candidate leads by this version: this candidate wrote it, and has stopped.
            self.remember_our_write(now, seen.clone());
        }
        phase
    }

    pub(super) fn term(&self, hold: &Hold) -> Term {
        Term { fencing_token: hold.token, sent_at: hold.sent_at, valid_until: hold.valid_until() }
    }

    pub(super) fn tell(&mut self, fact: Fact) {
        self.effects.push_back(Effect::Fact(fact));
    }

    pub(super) fn announce(&mut self, holder: &str) {
        let leader = (!holder.is_empty()).then_some(holder);
        if self.announced.as_deref() != leader {
            self.announced = leader.map(str::to_owned);
            self.tell(Fact::LeaderChanged { leader: self.announced.clone() });
        }
    }
}
