//! The loop that runs one term: it moves between the state machine, the lock, the clock and the work.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::RunOutcome;
use super::fitness::Fitness;
use super::meters::{Meters, TermMeter};
use super::new_leader::NewLeaderCalls;
use super::request::{self, About, Answered, Sent};
use super::term::{EarlierWork, OpenTerm, WorkEnd};
use super::wall_clock::WallClock;
use crate::callbacks::{Start, Work};
use crate::clock::LocalInstant;
use crate::config::LeaderElectionConfig;
use crate::election::{BeginReason, Election, EndReason, Jitter, Stamp};
use crate::leadership::Leadership;
use crate::status::Status;

/// What to run when the term starts, and whether its completion ends the term.
pub(super) struct StartWork {
    pub(super) start: Option<Start>,
    ends_term: bool,
}

impl StartWork {
    /// Work whose completion ends the term and releases the lease.
    pub(super) fn once(start: impl FnOnce(Leadership) -> Work + Send + 'static) -> Self {
        Self { start: Some(Box::new(start)), ends_term: true }
    }
}

#[derive(Debug)]
pub(super) struct Driver {
    pub(super) config: LeaderElectionConfig,
    pub(super) election: Election,
    pub(super) status: watch::Sender<Status>,
    pub(super) random: Xoshiro256PlusPlus,
    pub(super) new_leader_calls: NewLeaderCalls,
    pub(super) earlier_work: EarlierWork,
    pub(super) fitness: Fitness,
    wall_clock: WallClock,
}

/// What the loop was woken by.
#[expect(clippy::large_enum_variant, reason = "lives on the stack, one at a time")]
enum Woken {
    Cancelled,
    GivenUp,
    Work(WorkEnd),
    Answer(Answered),
    Time,
}

/// One run of the loop.
pub(super) struct TermRun {
    pub(super) work: StartWork,
    pub(super) in_flight: Option<Sent>,
    pub(super) open: Option<OpenTerm>,
    /// What made the lease free that we won.
    pub(super) acquired: BeginReason,
    pub(super) meters: Meters,
    pub(super) term_meter: Option<TermMeter>,
    /// When the work was dropped, the moment from which its end is not waited for any longer.
    pub(super) leave_at: Option<LocalInstant>,
    pub(super) outcome: RunOutcome,
}

impl TermRun {
    /// Whether a term was won, and was over before its work could begin: this process was stopped in between.
    fn was_missed(&self) -> bool {
        self.outcome.fencing_token.is_none() && self.outcome.reason == EndReason::RenewDeadline
    }
}

impl Driver {
    pub(super) fn new(config: LeaderElectionConfig, status: watch::Sender<Status>) -> Self {
        Self {
            election: Election::new(config.rules.clone()),
            random: config.seed.map_or_else(rand::make_rng, Xoshiro256PlusPlus::seed_from_u64),
            new_leader_calls: NewLeaderCalls::new(config.callbacks.on_new_leader.clone()),
            earlier_work: EarlierWork::default(),
            fitness: Fitness::default(),
            wall_clock: WallClock::default(),
            status,
            config,
        }
    }

    /// The configured `on_start_leading`; when it completes we go on leading, as in client-go.
    pub(super) fn callback_work(&self) -> StartWork {
        let callback = self.config.callbacks.on_start_leading.clone();
        let start = callback.map(|callback| -> Start { Box::new(move |leadership| callback(leadership)) });
        StartWork { start, ends_term: false }
    }

    pub(super) fn step_down_cool_down(&self) -> Duration {
        self.config.step_down_cool_down
    }

    /// Competes, leads one term, and stops. Writes nothing for the first `stand_back`.
    pub(super) async fn run_term(
        &mut self,
        cancel: &CancellationToken,
        work: StartWork,
        stand_back: Duration,
    ) -> RunOutcome {
        let outcome = RunOutcome { fencing_token: None, reason: EndReason::Cancelled };
        tokio::select! {
            biased;
            () = cancel.cancelled() => return outcome,
            () = self.earlier_work.ended() => {}
        }
        let Self { fitness, random, config, .. } = self;
        let fit = tokio::select! {
            biased;
            () = cancel.cancelled() => return outcome,
            fit = fitness.demand(config, || stamp(random, config).write_id) => fit,
        };
        if let Err(reason) = fit {
            return RunOutcome { reason, ..outcome };
        }
        let now = self.config.clock.now();
        self.election.begin(now);
        self.election.stand_back_until(now + stand_back);
        let mut run = TermRun {
            work,
            in_flight: None,
            open: None,
            acquired: BeginReason::Released,
            meters: Meters::new(&self.config.name),
            term_meter: None,
            leave_at: None,
            outcome,
        };
        let mut if_dropped = ForgetWaitingCalls(Some(self.new_leader_calls.clone()));
        loop {
            self.advance(&mut run);
            if self.election.is_idle() {
                if !run.was_missed() {
                    if_dropped.0 = None;
                    return run.outcome;
                }
                run.outcome.reason = EndReason::Cancelled;
                self.election.begin(self.config.clock.now());
            }
            let woken = self.wait(cancel, &mut run).await;
            self.handle(woken, &mut run);
        }
    }

    /// Does everything that can be done without waiting.
    fn advance(&mut self, run: &mut TermRun) {
        loop {
            let now = self.config.clock.now();
            let Self { election, random, config, wall_clock, .. } = self;
            let request = election.poll(now, || {
                let stamp = stamp(random, config);
                wall_clock.look(now, stamp.time);
                stamp
            });
            self.take_events(run);
            if let Some(request) = request {
                let about = About::new(&request, now, self.election.leading(now).is_some());
                tracing::debug!(request = about.operation.name(), "asking the lock");
                run.meters.sent(&about);
                let deadline = now + self.config.request_timeout;
                let (lock, clock) = (Arc::clone(&self.config.lock), Arc::clone(&self.config.clock));
                run.in_flight = Some(request::send(lock, clock, about, request, deadline));
            }
            if !self.finish_stopping(now, run) {
                return;
            }
        }
    }

    /// Rule 8: once the work has ended, or cannot be waited for any longer, concludes the term and goes
    /// on to the release. Returns whether it did.
    fn finish_stopping(&mut self, now: LocalInstant, run: &mut TermRun) -> bool {
        let Some(drop_at) = self.election.stop_by() else { return false };
        let mut release = self.config.release_on_cancel
            || matches!(
                run.outcome.reason,
                EndReason::SteppedDown | EndReason::WorkFinished | EndReason::Transferred { .. }
            );
        if let Some(open) = run.open.as_mut().filter(|open| open.is_working()) {
            if now < drop_at {
                return false;
            }
            let leave_at = *run.leave_at.get_or_insert_with(|| {
                open.drop_work();
                run.meters.overrun();
                tracing::error!(
                    fencing_token = open.leadership.fencing_token(),
                    "the leader's work did not stop in time and is dropped; make it watch Leadership::lost"
                );
                // From now, not from `drop_at`: after a suspend that is long past, and the work still has
                // to be dropped before `on_stop_leading` is called.
                now + self.config.rules.stop_margin()
            });
            if now < leave_at {
                return false;
            }
            release = false;
            tracing::error!(
                fencing_token = open.leadership.fencing_token(),
                "the leader's work cannot be dropped because it does not await, and outlives its lease; make it \
                 await, or exit the process in on_stop_leading"
            );
        }
        if let Some(open) = run.open.take() {
            open.conclude();
        }
        self.election.work_stopped(now, release);
        true
    }

    async fn wait(&mut self, cancel: &CancellationToken, run: &mut TermRun) -> Woken {
        let leads_or_competes = self.election.stop_by().is_none() && !self.election.is_releasing();
        let wake = match run.leave_at {
            Some(leave_at) if run.open.is_some() => Some(leave_at),
            _ => self.election.next_wake(),
        };
        let TermRun { in_flight, open, .. } = run;
        let given_up = open.as_ref().map(|open| open.leadership.clone());
        tokio::select! {
            biased;
            () = cancel.cancelled(), if leads_or_competes => Woken::Cancelled,
            () = lost(given_up.as_ref()), if leads_or_competes => Woken::GivenUp,
            end = work_ended(open.as_mut()) => Woken::Work(end),
            answered = answer(in_flight.as_mut()) => Woken::Answer(answered),
            () = sleep_until(&*self.config.clock, wake) => Woken::Time,
        }
    }

    fn handle(&mut self, woken: Woken, run: &mut TermRun) {
        let now = self.config.clock.now();
        match woken {
            Woken::Time => {}
            Woken::Cancelled | Woken::GivenUp => {
                // Who gives up leadership and cancels at once wants both: the lease goes where it was promised.
                let given_up = run.open.as_ref().and_then(|open| open.leadership.given_up());
                self.election.stop(now, given_up.unwrap_or(EndReason::Cancelled));
            }
            Woken::Work(WorkEnd::Panicked) => {
                tracing::error!("the leader's work panicked; the term ends");
                self.election.stop(now, EndReason::WorkPanicked);
            }
            Woken::Work(WorkEnd::Complete) if run.work.ends_term => self.election.stop(now, EndReason::WorkFinished),
            Woken::Work(_) => {}
            Woken::Answer(Answered { answer, error }) => {
                if let Some(sent) = run.in_flight.take() {
                    self.take_note(now, &sent.about, &answer, error, &mut run.meters);
                }
                let jitter = Jitter::new(self.random.random());
                self.election.on_answer(now, answer, jitter);
            }
        }
        self.take_events(run);
        if let (Some(open), Some(term)) = (&run.open, self.election.leading(now)) {
            open.leadership.renew(term);
        }
    }
}

fn stamp(random: &mut Xoshiro256PlusPlus, config: &LeaderElectionConfig) -> Stamp {
    let time = config.clock.wall_time();
    let millis = u64::try_from(time.timestamp_millis()).unwrap_or(0);
    let write_id = uuid::Builder::from_unix_timestamp_millis(millis, &random.random()).into_uuid();
    Stamp { write_id: write_id.to_string(), time }
}

async fn lost(leadership: Option<&Leadership>) {
    match leadership {
        Some(leadership) => leadership.lost().await,
        None => std::future::pending().await,
    }
}

async fn work_ended(open: Option<&mut OpenTerm>) -> WorkEnd {
    match open {
        Some(open) => open.work_ended().await,
        None => std::future::pending().await,
    }
}

async fn answer(in_flight: Option<&mut Sent>) -> Answered {
    match in_flight {
        Some(sent) => sent.answer.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(clock: &dyn crate::clock::Clock, wake: Option<LocalInstant>) {
    match wake {
        Some(wake) => clock.sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

/// Drops what `on_new_leader` has not been called with, when the election's future is dropped.
struct ForgetWaitingCalls(Option<NewLeaderCalls>);

impl Drop for ForgetWaitingCalls {
    fn drop(&mut self) {
        if let Some(calls) = &self.0 {
            calls.forget_waiting();
        }
    }
}
