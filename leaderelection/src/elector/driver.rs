//! The loop that drives the state machine: it waits for events, passes them to the machine, and carries out the
//! effects. The loop knows none of the protocol's rules.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::audience::{Audience, OnTheLine};
use super::fitness::Fitness;
use super::log;
use super::report::Report;
use super::request::{self, Answered, Sent};
use super::stamper::Stamper;
use super::store_time::StoreTime;
use super::term::{EarlierWork, OpenTerm};
use super::work::StartWork;
use crate::clock::{Clock, LocalInstant};
use crate::config::LeaderElectionConfig;
use crate::config_warning::ConfigWarning;
use crate::election::{
    Answer, BeginReason, ClashWatch, Command, Effect, Election, Fact, Input, Operation, Request, RunOutcome, Term,
};
use crate::leadership::{Leadership, TermListener};
use crate::lock::LockError;
use crate::refused::RefusedWrites;
use crate::status::StatusWriter;
use crate::store_check::StoreUnfit;
use crate::timings::Timings;
use crate::tuning::Tuning;

#[derive(Debug)]
pub(super) struct Driver {
    pub(super) config: Arc<LeaderElectionConfig>,
    election: Election,
    stamper: Stamper,
    clash_watch: ClashWatch,
    refused: RefusedWrites,
    store_time: StoreTime,
    /// `true` after the log has said that the store tells no ages.
    misses_ages: bool,
    pub(super) audience: Arc<Audience>,
    tuning: Arc<Tuning>,
    earlier_work: EarlierWork,
    fitness: Fitness,
}

/// One run of the loop.
struct Run {
    work: StartWork,
    report: Report,
    in_flight: Option<Sent>,
    open: Option<OpenTerm>,
    /// `true` if the machine knows that the caller has cancelled.
    cancel_told: bool,
    outcome: Option<RunOutcome>,
    /// The work was told to be dropped, and has had no turn since.
    work_is_due: bool,
    _on_the_line: OnTheLine,
}

/// The event that woke the loop.
enum Woken {
    /// The machine's next tick is due, and this is the time.
    Tick(LocalInstant),
    Input(Input),
    Answer(Result<Answer, LockError>),
    /// The timings have changed.
    Tuned(Timings),
}

impl Driver {
    pub(super) fn new(config: Arc<LeaderElectionConfig>, tuning: Arc<Tuning>, status: StatusWriter) -> Self {
        Self {
            election: Election::new(Arc::clone(&config.rules)),
            stamper: Stamper::new(Arc::clone(&config.clock), config.seed),
            clash_watch: ClashWatch::new(&config.rules.identity),
            refused: RefusedWrites::default(),
            store_time: StoreTime::default(),
            misses_ages: false,
            audience: Arc::new(Audience::new(Arc::clone(&config), status)),
            tuning,
            earlier_work: EarlierWork::default(),
            fitness: Fitness::default(),
            config,
        }
    }

    /// Competes, leads one term, and stops. Writes nothing for the first `stand_back`.
    pub(super) async fn run_term(
        &mut self,
        cancel: &CancellationToken,
        work: StartWork,
        stand_back: Duration,
    ) -> Result<RunOutcome, StoreUnfit> {
        // One future for the whole run: each new one would be entered into the token's list of waiters.
        let mut cancelled = pin!(cancel.cancelled());
        let Self { fitness, stamper, config, earlier_work, .. } = self;
        let ready = async {
            earlier_work.ended().await;
            fitness.demand(config.store_check.as_deref(), || config.candidacy(stamper.new_id())).await
        };
        tokio::select! {
            biased;
            () = cancelled.as_mut() => return Ok(RunOutcome::NeverLed),
            fit = ready => fit?,
        }
        let report = Report::new(Arc::clone(&self.audience) as _);
        let input = Input::Begin { stand_back, ends_with_work: work.ends_term(), job: work.job() };
        let mut run = Run {
            work,
            report,
            in_flight: None,
            open: None,
            cancel_told: false,
            outcome: None,
            work_is_due: false,
            _on_the_line: OnTheLine(Arc::clone(&self.audience)),
        };
        if let Some(timings) = self.tuning.take() {
            self.step(Woken::Tuned(timings), &mut run);
        }
        let mut woken = Woken::Input(input);
        loop {
            self.step(woken, &mut run);
            if let Some(outcome) = run.outcome.take() {
                run.report.finished();
                return Ok(outcome);
            }
            if std::mem::take(&mut run.work_is_due) {
                // Work that awaits is gone after its next turn. Other input may be there already, if the process was
                // stopped meanwhile, and must not give up the work before that turn. A task that is spawned now has
                // its turn after the work. A mere yield would be over as soon as anything else wakes this task.
                let _ = tokio::spawn(std::future::ready(())).await;
            }
            woken = self.wait(cancelled.as_mut(), &mut run).await;
        }
    }

    async fn wait(&self, cancelled: Pin<&mut WaitForCancellationFuture<'_>>, run: &mut Run) -> Woken {
        let Run { in_flight, open, cancel_told, .. } = run;
        tokio::select! {
            biased;
            // A transfer takes precedence over a cancellation at the same time, so the lease goes to the named
            // candidate.
            input = next_of_term(open.as_ref(), &self.audience.news) => Woken::Input(input),
            () = cancelled, if !*cancel_told => {
                *cancel_told = true;
                Woken::Input(Input::Command(Command::Stop))
            }
            timings = self.tuning.next() => Woken::Tuned(timings),
            answer = answered(in_flight.as_mut()) => Woken::Answer(answer),
            now = self.sleep() => Woken::Tick(now),
            // A peer that talks without end must not keep the elector from anything else.
            heard = self.audience.line.next_word(), if self.election.listens() => Woken::Input(Input::Heard(heard)),
        }
    }

    /// Sleeps until the machine wants a tick, and returns the time.
    async fn sleep(&self) -> LocalInstant {
        match self.election.wake_at() {
            // Through the `Arc`, the sleep would be boxed once more.
            Some(wake_at) => (*self.config.clock).sleep_until(wake_at).await,
            None => std::future::pending().await,
        }
    }

    /// Reads the clock once, unless the sleep has just done so, takes one step of the machine, and carries out all effects of
    /// that step.
    fn step(&mut self, woken: Woken, run: &mut Run) {
        let now = match woken {
            Woken::Tick(now) => now,
            Woken::Input(_) | Woken::Answer(_) | Woken::Tuned(_) => self.config.clock.now(),
        };
        match woken {
            Woken::Tick(_) => self.election.handle(now, Input::Tick, self.stamper.at(now)),
            Woken::Input(input) => {
                if let Input::WorkEnded(end) = input {
                    run.report.work_ended(end, run.open.as_ref().and_then(OpenTerm::take_error).as_deref());
                }
                self.election.handle(now, input, self.stamper.at(now));
            }
            Woken::Tuned(timings) => {
                self.config = Arc::new(self.config.with_timings(timings));
                log::reconfigured(&timings);
                self.config.warnings().iter().for_each(ConfigWarning::log);
                let input = Input::Reconfigure(Arc::clone(&self.config.rules));
                self.election.handle(now, input, self.stamper.at(now));
            }
            Woken::Answer(result) => {
                let Some(sent) = run.in_flight.take() else { return };
                let (answer, error) = sent.answered(result);
                let (answered, blame) = (Answered::of(&answer), self.blame(&sent, &answer));
                self.look_for_age(&answer);
                self.election.handle(now, Input::Answer(answer), self.stamper.at(now));
                run.report.answered(now, sent.asked, answered, error.as_ref());
                if let Some((operation, error)) = blame {
                    run.report.failed(now, operation, &error);
                }
            }
        }
        while let Some(effect) = self.election.next() {
            self.carry_out(now, effect, run);
        }
    }

    /// Says once that the store tells no ages, if they are to be trusted.
    fn look_for_age(&mut self, answer: &Answer) {
        if self.config.rules.store_clock_slack.is_some()
            && matches!(answer, Answer::Read(Ok(Some(found))) if found.age.is_none())
            && !std::mem::replace(&mut self.misses_ages, true)
        {
            log::store_tells_no_age();
        }
    }

    /// Finds out whether the store refuses writes that it has to accept. Nothing is decided by it.
    fn blame(&mut self, sent: &Sent, answer: &Answer) -> Option<(Operation, LockError)> {
        match answer {
            Answer::Written(written) => {
                self.refused.answered(sent.replaces.as_ref(), written.as_ref().map_err(|failure| failure.kind));
                None
            }
            Answer::Read(Ok(found)) => {
                let operation = if found.is_some() { Operation::Update } else { Operation::Create };
                let error = self.refused.saw(found.as_ref(), || self.config.lock.describe())?;
                Some((operation, error))
            }
            Answer::Read(Err(_)) => None,
        }
    }

    fn carry_out(&mut self, now: LocalInstant, effect: Effect, run: &mut Run) {
        match effect {
            Effect::Send(request) => self.send(now, request, run),
            Effect::Start { term, reason } => self.start(term, reason, run),
            Effect::Extend(term) => {
                let Some(open) = &run.open else { return };
                if open.leadership().extend(term) {
                    self.audience.line.landed(open.leadership(), &self.election);
                } else {
                    let now = self.config.clock.now();
                    self.election.handle(now, Input::Expired, self.stamper.at(now));
                }
            }
            Effect::Stop { fencing_token, reason, .. } => {
                if let Some(open) = &run.open {
                    open.leadership().close();
                }
                run.report.stopped(fencing_token, reason);
                if let Some(open) = &run.open {
                    open.stop();
                }
            }
            Effect::DropWork => {
                if let Some(open) = &run.open {
                    open.drop_work();
                    run.work_is_due = true;
                    run.report.dropped_work(open.leadership().fencing_token());
                }
            }
            Effect::Abandon => {
                if let Some(open) = &run.open {
                    run.report.abandoned_work(open.leadership().fencing_token());
                    open.abandon();
                }
            }
            Effect::Finished(outcome) => run.outcome = Some(outcome),
            Effect::Fact(Fact::Observed) => {
                let (observed, stamper) = (self.election.observed(), &self.stamper);
                run.report.observed(now, observed);
                self.audience.line.observed(&self.election);
                let write_id = observed.and_then(|(record, _)| record.write_id.as_deref());
                let number = write_id.and_then(|write_id| stamper.number_of(write_id));
                if self.clash_watch.saw(observed, number.is_some()) {
                    run.report.identity_clash();
                }
                if self.store_time.went_back(number) {
                    log::store_went_back();
                }
            }
            Effect::Fact(fact) => {
                match &fact {
                    Fact::Released => self.audience.line.released(&self.election),
                    Fact::Heard => {
                        self.audience.line.heard();
                        if let Some(at) = self.election.last_heard_at() {
                            run.report.heard(at);
                        }
                    }
                    _ => {}
                }
                run.report.fact(fact);
            }
        }
    }

    fn send(&self, now: LocalInstant, request: Request, run: &mut Run) {
        run.report.sending(request.operation());
        if request.operation() == Operation::Get {
            self.audience.line.reading(now, &self.election);
        }
        run.in_flight = Some(request::send(Arc::clone(&self.config), request, now));
    }

    fn start(&mut self, term: Term, reason: BeginReason, run: &mut Run) {
        let listener: Arc<dyn TermListener> = Arc::clone(&self.audience) as _;
        let leadership = Leadership::new(term, Arc::clone(&self.config.clock), Arc::downgrade(&listener));
        run.report.started(&leadership, reason);
        self.audience.line.landed(&leadership, &self.election);
        let on_stop = self.config.callbacks.on_stop_leading.clone();
        let open = OpenTerm::start(leadership, run.work.prepare(), on_stop, self.audience.status.clone());
        self.earlier_work = open.work();
        run.open = Some(open);
    }
}

async fn next_of_term(open: Option<&OpenTerm>, news: &Notify) -> Input {
    let Some(open) = open else { return std::future::pending().await };
    loop {
        if let Some(input) = open.next_event() {
            return input;
        }
        news.notified().await;
    }
}

async fn answered(in_flight: Option<&mut Sent>) -> Result<Answer, LockError> {
    match in_flight {
        Some(sent) => sent.answer.as_mut().await,
        None => std::future::pending().await,
    }
}
