//! The loop that drives the state machine: it waits for events, passes them to the machine, and carries out the effects. It contains none
//! of the protocol's rules.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::anomalies::Anomalies;
use super::elector_listeners::{ElectorListeners, RunGuard};
use super::entropy::Entropy;
use super::log;
use super::request::{self, Sent};
use super::run_error::ElectionError;
use super::store_check::StoreCheckState;
use super::term::PreviousWork;
use super::term_runner::{DroppedWork, TermRunner};
use super::work::StartWork;
use crate::clock::{Clock, LocalInstant};
use crate::config::LeaderElectionConfig;
use crate::config::warning::ConfigWarning;
use crate::election::{Answer, Command, Effect, Election, Input, PeerMessage, RunOutcome};
use crate::handle::tuning::{Tuned, Tuning};
use crate::leadership::window::Window;
use crate::lock::LockError;
use crate::util::stop::{self, Stop};

#[derive(Debug)]
pub(super) struct Driver {
    pub(super) config: Arc<LeaderElectionConfig>,
    election: Election,
    entropy: Entropy,
    anomalies: Anomalies,
    listeners: Arc<ElectorListeners>,
    earlier_work: PreviousWork,
    store_check: StoreCheckState,
    warned: bool,
}

/// One run of the loop.
struct Run {
    work: StartWork,
    term_runner: TermRunner,
    in_flight: Option<Sent>,
    /// `true` after the machine was told to stop.
    told_to_stop: bool,
    outcome: Option<RunOutcome>,
    dropped_work: DroppedWork,
    _guard: RunGuard,
}

impl Run {
    /// Returns `true` if the candidacy has to end because it is a single attempt and would now have to wait.
    fn has_made_its_attempt(&self) -> bool {
        self.work.is_one_attempt() && !self.told_to_stop && self.in_flight.is_none() && self.term_runner.open.is_none()
    }
}

/// The event that woke the loop.
enum Event {
    /// The machine's next tick is due, and this is the time.
    Tick(LocalInstant),
    Input(Input),
    Answer(Result<Answer, LockError>),
    /// The settings have changed.
    Tuned(Tuned),
}

impl Driver {
    pub(super) fn new(config: Arc<LeaderElectionConfig>, listeners: Arc<ElectorListeners>) -> Self {
        Self {
            election: Election::new(Arc::clone(&config.rules)),
            entropy: Entropy::new(Arc::clone(&config.basics.clock), config.basics.seed),
            anomalies: Anomalies::of_lease(&config.rules.identity, config.rules.store_clock_slack.is_some()),
            listeners,
            earlier_work: PreviousWork::default(),
            store_check: StoreCheckState::default(),
            warned: false,
            config,
        }
    }

    /// Competes, leads one term, and stops. Writes nothing for the first `stand_back`.
    pub(super) async fn run_term(
        driver: &tokio::sync::Mutex<Self>,
        mut stop: Stop<'_>,
        work: StartWork,
        stand_back: Duration,
    ) -> Result<RunOutcome, ElectionError> {
        let mut driver = tokio::select! {
            biased;
            // The driver may be busy with the release of an earlier term. A cancelled caller must not wait for that.
            () = stop::requested(stop.as_mut()) => return Ok(RunOutcome::NeverLed),
            driver = driver.lock() => driver,
        };
        if !std::mem::replace(&mut driver.warned, true) {
            driver.config.warnings().iter().for_each(ConfigWarning::log);
        }
        let Self { store_check, entropy, config, earlier_work, .. } = &mut *driver;
        let ready = async {
            // Rule 8: no term begins while work of an earlier one runs, and that work may outlive its run.
            earlier_work.ended().await;
            store_check
                .require_passed(config.basics.store_check.as_deref(), || config.candidacy(entropy.new_id()))
                .await
        };
        tokio::select! {
            biased;
            // No write can have won a lease yet, so a cancelled caller need not wait for abandoned work or for a check.
            () = stop::requested(stop.as_mut()) => return Ok(RunOutcome::NeverLed),
            passed = ready => passed?,
        }
        let input = Input::Begin { stand_back, ends_with_work: work.ends_term(), job: work.job() };
        let mut run = Run {
            work,
            term_runner: TermRunner::new(Arc::clone(&driver.listeners) as _),
            in_flight: None,
            told_to_stop: false,
            outcome: None,
            dropped_work: DroppedWork::default(),
            _guard: RunGuard(Arc::clone(&driver.listeners)),
        };
        run.term_runner.report.for_job(run.work.job().as_ref());
        // Settings that changed between two runs count from the first request on (rule 22).
        if let Some(tuned) = driver.listeners.tuning.take() {
            driver.step(Event::Tuned(tuned), &mut run);
        }
        let mut woken = Event::Input(input);
        loop {
            driver.step(woken, &mut run);
            if let Some(outcome) = run.outcome.take() {
                // Lets queued calls of `on_new_leader` run; if this future is dropped instead, they are forgotten.
                run.term_runner.report.finished();
                return Ok(outcome);
            }
            // Dropped work ends when the runtime next runs it. Waits for that: after a freeze, the next event may already abandon it.
            run.dropped_work.wait_until_run().await;
            // The attempt is ended by a command, because its write may have won the lease: the machine then reads, and releases the lease
            // if so configured.
            woken = if run.has_made_its_attempt() {
                run.told_to_stop = true;
                Event::Input(Input::Command(Command::Stop))
            } else {
                driver.wait(stop.as_mut(), &mut run).await
            };
        }
    }

    async fn wait(&self, mut stop: Stop<'_>, run: &mut Run) -> Event {
        let Run { in_flight, term_runner, told_to_stop, .. } = run;
        tokio::select! {
            biased;
            // A transfer takes precedence over a cancellation at the same time, so the lease goes to the named
            // candidate.
            woken = next_news(term_runner, &self.listeners.tuning) => woken,
            () = stop.as_mut(), if !*told_to_stop => {
                *told_to_stop = true;
                Event::Input(Input::Command(Command::Stop))
            }
            // The request stays in its field: if another event ends this wait, no answer may be lost.
            answer = answered(in_flight.as_mut()) => Event::Answer(answer),
            now = self.sleep() => Event::Tick(now),
            // Endless messages of a peer must not keep the elector from anything else.
            message = self.next_message(), if self.election.listens() => Event::Input(Input::Message(message)),
        }
    }

    /// Waits for the next message of a peer, but is not woken by it. Poll it together with [`next_news`]: a message notifies
    /// `tuning.wake_elector`, the one wake-up for all events, which only that function awaits.
    fn next_message(&self) -> impl Future<Output = PeerMessage> {
        poll_fn(|_| self.listeners.peer_line.next_message().map_or(Poll::Pending, Poll::Ready))
    }

    /// Sleeps until the machine wants a tick, and returns the time.
    async fn sleep(&self) -> LocalInstant {
        match self.election.wake_at() {
            // If called through the `Arc`, the sleep would be boxed twice.
            Some(wake_at) => (*self.config.basics.clock).sleep_until(wake_at).await,
            None => std::future::pending().await,
        }
    }

    /// Reads the clock once, unless the sleep has just done so, takes one step of the machine, and carries out all effects of
    /// that step.
    fn step(&mut self, woken: Event, run: &mut Run) {
        let now = if let Event::Tick(now) = woken { now } else { self.config.basics.clock.now() };
        match woken {
            Event::Tick(_) => self.election.handle(now, Input::Tick, self.entropy.at(now)),
            Event::Input(input) => self.election.handle(now, input, self.entropy.at(now)),
            Event::Tuned(tuned) => {
                let tuned = Arc::new(self.config.with(tuned));
                // Replaced before the machine's step, so that a request of this very step has the new time limit.
                let before = std::mem::replace(&mut self.config, tuned);
                if before.basics.timings != self.config.basics.timings {
                    log::reconfigured(&self.config.basics.timings);
                    self.config.warnings().iter().for_each(ConfigWarning::log);
                }
                let input = Input::Reconfigure(Arc::clone(&self.config.rules));
                self.election.handle(now, input, self.entropy.at(now));
            }
            Event::Answer(result) => {
                // The field is empty before the machine's step, because an effect of this step may send the next request.
                let Some(Sent { asked, .. }) = run.in_flight.take() else { return };
                let (answer, error) = asked.answered(result);
                let describe = || self.config.lock.describe();
                let noticed = self.anomalies.answered(&asked, &answer, &self.entropy, describe);
                run.term_runner.report.answered(now, &asked, &answer, error.as_ref(), &noticed, None);
                run.term_runner.report.left_out(self.config.lock.parts_left_out());
                self.election.handle(now, Input::Answer(answer), self.entropy.at(now));
                if error.is_none() {
                    self.listeners.peer_line.observed(&self.election);
                }
            }
        }
        while let Some(effect) = self.election.next() {
            self.listeners.peer_line.decided(now, &effect, &self.election);
            self.carry_out(now, effect, run);
        }
    }

    fn carry_out(&mut self, now: LocalInstant, effect: Effect, run: &mut Run) {
        match effect {
            Effect::Send(request) => {
                run.term_runner.report.sending(request.operation());
                // The window begins at the time of the step, which is before the send, as rule 4 demands.
                run.in_flight = Some(request::send(Arc::clone(&self.config), request, now));
            }
            Effect::Start { term, reason } => {
                // The earlier work, from the next run on. It is kept beyond this run, whose future can be dropped even if its work cannot.
                self.earlier_work = run.term_runner.start(term.fencing_token, Window::new(&term), reason, &run.work);
                self.tell_peers(run);
            }
            Effect::Extend(term) => {
                let Some(open) = &run.term_runner.open else { return };
                // The work can read the clock at any moment, so it may have seen the window closed since this step began. A closed window
                // must stay closed (rule 4), so the window decides here, not the machine.
                if open.leadership().extend(term) {
                    self.tell_peers(run);
                } else {
                    // Takes another step, because this step's time is before the moment at which the window closed. A command from another
                    // thread may have closed the window. If it were not taken here, the term would be reported as ended by the renew
                    // deadline.
                    let now = self.config.basics.clock.now();
                    let input = open.leadership().take_command().map_or(Input::Expired, Input::Command);
                    self.election.handle(now, input, self.entropy.at(now));
                }
            }
            // The loop checks the outcome after all effects of this step.
            Effect::Finished(outcome) => run.outcome = Some(outcome),
            effect => run.term_runner.carry_out(now, effect, &mut run.dropped_work),
        }
    }

    /// Reports to the peers that a write of the term is committed, and that the term continues.
    fn tell_peers(&self, run: &Run) {
        if let Some(open) = &run.term_runner.open {
            self.listeners.peer_line.committed(open.leadership(), &self.election);
        }
    }
}

/// Waits for an event of the term, or for new settings. There is one wake-up for all events, because each wait makes every elector's
/// future larger, and a process may have thousands.
async fn next_news(term_runner: &TermRunner, tuning: &Tuning) -> Event {
    loop {
        // An event may have come before this wait, and a wake-up may belong to an event that was already taken.
        if let Some(input) = term_runner.next_event() {
            return Event::Input(input);
        }
        if let Some(tuned) = tuning.take() {
            return Event::Tuned(tuned);
        }
        tuning.wake_elector.notified().await;
    }
}

async fn answered(in_flight: Option<&mut Sent>) -> Result<Answer, LockError> {
    match in_flight {
        Some(sent) => sent.answer.as_mut().await,
        None => std::future::pending().await,
    }
}
