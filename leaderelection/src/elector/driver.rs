//! The loop that drives the state machine: it waits for events, passes them to the machine, and carries out the effects. Of the protocol's
//! rules, it implements only those about tasks and callbacks.

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

/// The state that an elector keeps from run to run.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) config: Arc<LeaderElectionConfig>,
    election: Election,
    entropy: Entropy,
    anomalies: Anomalies,
    listeners: Arc<ElectorListeners>,
    earlier_work: PreviousWork,
    store_check: StoreCheckState,
    /// `true` once the warnings about the settings were logged.
    warned: bool,
}

/// One run of the loop: one candidacy and its term.
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
    /// Returns `true` if the candidacy has to end, because it is a single attempt that would now have to wait.
    fn has_made_its_attempt(&self) -> bool {
        self.work.is_one_attempt() && !self.told_to_stop && self.in_flight.is_none() && self.term_runner.open.is_none()
    }
}

/// The event that woke the loop.
enum Event {
    /// The machine's next tick is due. The value is the current time.
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

    /// Competes, leads one term, and returns. Nothing is written before `stand_back` is over: others go first.
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
            // Rule 8: no term begins while work of an earlier term runs. Such work may outlive its run.
            earlier_work.ended().await;
            // Each try of the check gets a new id, because the check names its own objects after the id.
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
        // Settings that changed between two runs apply to the first request of this run (rule 22).
        if let Some(tuned) = driver.listeners.tuning.take() {
            driver.step(Event::Tuned(tuned), &mut run);
        }
        let mut event = Event::Input(input);
        loop {
            driver.step(event, &mut run);
            if let Some(outcome) = run.outcome.take() {
                // Lets queued calls of `on_new_leader` run. If this future is dropped instead, they are never made.
                run.term_runner.report.finished();
                return Ok(outcome);
            }
            // If this step has dropped the work, the runtime runs the work once more, so that it can end. Otherwise,
            // the next event might abandon it.
            run.dropped_work.wait_until_run().await;
            // A single attempt ends with the command to stop, not with a return: a write with an unknown outcome (rule
            // 6) may have won the lease. The machine then reads, and releases the lease if so configured.
            event = if run.has_made_its_attempt() {
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
            // First, because a transfer must take precedence over a cancellation at the same time: it names the next
            // leader.
            event = next_local_event(term_runner, &self.listeners.tuning) => event,
            () = stop.as_mut(), if !*told_to_stop => {
                *told_to_stop = true;
                Event::Input(Input::Command(Command::Stop))
            }
            // Borrowed: if another event ends this wait, the request stays in `in_flight`, and its answer is not lost.
            answer = answered(in_flight.as_mut()) => Event::Answer(answer),
            now = self.sleep() => Event::Tick(now),
            // Last, so that a peer that never stops sending cannot delay the other events.
            message = self.next_message(), if self.election.listens() => Event::Input(Input::Message(message)),
        }
    }

    /// Returns the next message of a peer. The future registers no waker, so poll it together with
    /// [`next_local_event`], whose `tuning.wake_elector` is notified of messages, too.
    fn next_message(&self) -> impl Future<Output = PeerMessage> {
        poll_fn(|_| self.listeners.peers.next_message().map_or(Poll::Pending, Poll::Ready))
    }

    /// Sleeps until the machine wants a tick, and returns the time.
    async fn sleep(&self) -> LocalInstant {
        match self.election.wake_at() {
            // Dereferenced, because the `Clock` impl of `Arc` would box the sleep a second time.
            Some(wake_at) => (*self.config.basics.clock).sleep_until(wake_at).await,
            None => std::future::pending().await,
        }
    }

    /// Takes one step of the machine, with one reading of the clock, and carries out all effects of that step. A tick
    /// brings its reading: the one with which the sleep ended. If the step extends a window that has closed meanwhile,
    /// another step follows, with a new reading.
    fn step(&mut self, event: Event, run: &mut Run) {
        let mut now = if let Event::Tick(now) = event { now } else { self.config.basics.clock.now() };
        match event {
            Event::Tick(_) => self.election.handle(now, Input::Tick, self.entropy.at(now)),
            Event::Input(input) => self.election.handle(now, input, self.entropy.at(now)),
            Event::Tuned(tuned) => {
                let tuned = Arc::new(self.config.with(tuned));
                // The settings change before the machine's step, so that a request of this very step has the new time limit.
                let before = std::mem::replace(&mut self.config, tuned);
                if before.basics.timings != self.config.basics.timings {
                    log::reconfigured(&self.config.basics.timings);
                    self.config.warnings().iter().for_each(ConfigWarning::log);
                }
                let input = Input::Reconfigure(Arc::clone(&self.config.rules));
                self.election.handle(now, input, self.entropy.at(now));
            }
            Event::Answer(result) => {
                // The field is emptied before the machine's step, because an effect of that step may send the next request.
                let Some(Sent { asked, .. }) = run.in_flight.take() else { return };
                let (answer, error) = asked.answered(result);
                let describe = || self.config.lock.describe();
                let noticed = self.anomalies.answered(&asked, &answer, &self.entropy, describe);
                // An elector's own lock belongs to no session.
                let session = None;
                run.term_runner.report.answered(now, &asked, &answer, error.as_ref(), &noticed, session);
                run.term_runner.report.left_out(self.config.lock.parts_left_out());
                self.election.handle(now, Input::Answer(answer), self.entropy.at(now));
                if error.is_none() {
                    self.listeners.peers.observed(&self.election);
                }
            }
        }
        while let Some(effect) = self.election.next() {
            self.listeners.peers.on_effect(now, &effect, &self.election);
            now = self.carry_out(now, effect, run);
        }
    }

    /// Returns the time for the effects that follow, which is later than `now` if another step was necessary.
    fn carry_out(&mut self, now: LocalInstant, effect: Effect, run: &mut Run) -> LocalInstant {
        match effect {
            Effect::Send(request) => {
                run.term_runner.report.sending(request.operation());
                // The window begins at the time of the step, which is before the send, as rule 4 demands.
                run.in_flight = Some(request::send(Arc::clone(&self.config), request, now));
            }
            Effect::Start { term, reason } => {
                // Kept for the next run, which waits for this work: dropping a run does not end work that never awaits.
                self.earlier_work = run.term_runner.start(term.fencing_token, Window::new(&term), reason, &run.work);
                self.tell_peers(run);
            }
            Effect::Extend(term) => {
                let Some(open) = &run.term_runner.open else { return now };
                // The work can read the clock at any moment, so it may have seen the window closed since this step began. A closed window
                // must stay closed (rule 4), so the window decides here, not the machine.
                if open.leadership().extend(term) {
                    self.tell_peers(run);
                } else {
                    // Take another step with a new time, because the window closed after this step's time. If a command
                    // from another thread closed the window, the machine must get the command. Otherwise, it would
                    // report the renew deadline as the reason.
                    let now = self.config.basics.clock.now();
                    let input = open.leadership().take_command().map_or(Input::Expired, Input::Command);
                    self.election.handle(now, input, self.entropy.at(now));
                    return now;
                }
            }
            // The loop checks the outcome after all effects of this step.
            Effect::Finished(outcome) => run.outcome = Some(outcome),
            effect => run.term_runner.carry_out(now, effect, &mut run.dropped_work),
        }
        now
    }

    /// Reports to the peers that a write of the term is committed, and that the term continues.
    fn tell_peers(&self, run: &Run) {
        if let Some(open) = &run.term_runner.open {
            self.listeners.peers.committed(open.leadership(), &self.election);
        }
    }
}

/// Waits for an event of the term, or for new settings. Both wake the elector through one [`Tuning::wake_elector`]:
/// each further wait would make every elector's future larger, and a process may have thousands of electors.
async fn next_local_event(term_runner: &TermRunner, tuning: &Tuning) -> Event {
    loop {
        // Checked before each wait: an event may already be there, or a wake-up may come without one.
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
