//! One run of a session: waits for events, and passes each to the state machine in one step.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::unconstrained;

use super::lock_run::LockRun;
use super::log::{self, About, Failures};
use super::orders::{Candidacy, Order, State};
use super::request::{Done, Pending, Reply};
use super::shared::{Call, LockEntry, Shared};
use super::view::View;
use crate::clock::LocalInstant;
use crate::election::{self, Answer, Command};
use crate::elector::anomalies::Anomalies;
use crate::elector::entropy::Entropy;
use crate::elector::line::Led;
use crate::elector::term_runner::DroppedWork;
use crate::leadership::Leadership;
use crate::leadership::window::Window;
use crate::sessions::machine::{Input, LockId, Member, Page, SessionEntropy};
use crate::util::stop::Stop;

/// The state of one run, which is dropped at its end.
pub(super) struct Run<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) entropy: &'a mut Entropy,
    pub(super) failures: &'a mut Failures,
    pub(super) member: Member,
    /// The locks that an elector has competed for, by the number of their [`LockId`]; `None` for a removed lock.
    pub(super) locks: Vec<Option<Box<LockRun>>>,
    pub(super) names: HashMap<Arc<str>, LockId>,
    /// The locks whose electors were dropped.
    pub(super) orphaned: BTreeSet<LockId>,
    /// The window of the open session and of all its terms.
    pub(super) window: Option<Arc<Window>>,
    /// What the other members get to know of the open session: the session as a term of leadership, and the sender of
    /// its messages.
    pub(super) published: Option<(Leadership, Led)>,
    pub(super) requests: FuturesUnordered<Pending>,
    /// The number of locks that are led.
    pub(super) leads: usize,
    /// The value of `leads` in the last log line about it, and the moment of that line.
    pub(super) logged_leads: (usize, LocalInstant),
    pub(super) view: View,
    pub(super) dropped_work: DroppedWork,
    /// The anomaly detectors for the successive sessions of this process.
    pub(super) anomalies: &'a mut Anomalies,
    calls: &'a mut UnboundedReceiver<Call>,
    pub(super) ended: bool,
}

/// The event that woke the loop.
pub(super) enum Event {
    Input(Input),
    Order(Arc<LockEntry>, Order),
    Done(Done),
}

impl Event {
    /// Returns `true` for a command that comes from a term's own work, such as a transfer.
    pub(super) fn is_command(&self) -> bool {
        matches!(self, Self::Input(Input::Command { .. }))
    }
}

impl SessionEntropy for Entropy {
    fn session(&mut self) -> Arc<str> {
        self.new_id().into()
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(
        shared: &'a Arc<Shared>,
        entropy: &'a mut Entropy,
        failures: &'a mut Failures,
        anomalies: &'a mut Anomalies,
        calls: &'a mut UnboundedReceiver<Call>,
    ) -> Self {
        shared.set_state(State::Running);
        Self {
            shared,
            entropy,
            failures,
            member: Member::new(shared.settings.rules.clone()),
            locks: Vec::new(),
            names: HashMap::new(),
            orphaned: BTreeSet::new(),
            window: None,
            published: None,
            requests: FuturesUnordered::new(),
            leads: 0,
            logged_leads: (0, LocalInstant::default()),
            view: View::new(shared),
            dropped_work: DroppedWork::default(),
            anomalies,
            calls,
            ended: false,
        }
    }

    /// Waits for the next event. Cancellation safe.
    pub(super) async fn wait(&mut self, stop: Stop<'_>) -> Event {
        let (clock, wake_at) = (&*self.shared.settings.basics.clock, self.member.wake_at());
        let tick = async {
            match wake_at {
                Some(wake_at) => {
                    clock.sleep_until(wake_at).await;
                    // If the process was frozen, answers may have arrived meanwhile. They are handled before overdue deadlines.
                    tokio::task::yield_now().await;
                }
                None => std::future::pending().await,
            }
        };
        let call = tokio::select! {
            biased;
            // Calls come first: if many electors begin at once, one listing then shows all their locks.
            Some(call) = unconstrained(self.calls.recv()) => call,
            // The loop sees the stop itself, and only has to be woken.
            () = stop => return Event::Input(Input::Tick),
            Some(done) = self.requests.next() => return Event::Done(done),
            () = tick => return Event::Input(Input::Tick),
            // Messages come last: even if a member sends them without end, everything else is handled.
            (session, message) = self.shared.line.inbox.next() => return Event::Input(Input::Message { session, message }),
        };
        match call {
            Call::Order(entry, order) => Event::Order(entry, order),
            // There is no event if an earlier notification has taken it, or if the term is gone.
            Call::Term(name) => self.event_of_term(&name).unwrap_or(Event::Input(Input::Tick)),
        }
    }

    fn event_of_term(&mut self, name: &str) -> Option<Event> {
        let lock = *self.names.get(name)?;
        match self.lock_run(lock)?.next_event()? {
            election::Input::Command(command) => Some(Event::Input(Input::Command { lock, command })),
            election::Input::WorkEnded(end) => Some(Event::Input(Input::WorkEnded { lock, end })),
            _ => None,
        }
    }

    /// Takes one step of the machine at the time that the clock shows now, and carries out all effects of that step. If
    /// a window has closed meanwhile, takes another step at a later time.
    pub(super) fn step(&mut self, event: Event) {
        let mut now = self.shared.settings.basics.clock.now();
        let is_tick = matches!(event, Event::Input(Input::Tick));
        if is_tick {
            // If the process was frozen, messages may be waiting. Without them, their sender would count as silent.
            for (session, message) in self.shared.line.inbox.take() {
                self.handle(now, Input::Message { session, message });
            }
        }
        let lock = match event {
            Event::Input(input) => {
                let lock = match input {
                    Input::Command { lock, .. } | Input::WorkEnded { lock, .. } => Some(lock),
                    _ => None,
                };
                self.handle(now, input);
                lock
            }
            Event::Order(entry, order) => self.apply(now, entry, order),
            Event::Done(done) => self.answered(now, done),
        };
        // In order, because a stop has to be carried out before any request of the same step (rule 8).
        while let Some(effect) = self.member.next() {
            now = self.carry_out(now, effect);
        }
        if let Some(lock) = lock {
            self.forget_if_orphaned(lock);
        }
        let pause = self.shared.settings.rules.election.retry_period;
        // Thousands of locks may be acquired or lost within one retry period, so one line reports all of them.
        if is_tick && self.leads != self.logged_leads.0 && self.logged_leads.1 + pause <= now {
            self.logged_leads = (self.leads, now);
            log::leads(self.leads);
        }
    }

    pub(super) fn handle(&mut self, now: LocalInstant, input: Input) {
        self.member.handle(now, input, self.entropy.at(now));
    }

    /// Carries out an order of an elector. Returns its lock; `None` if this run does not have that lock.
    fn apply(&mut self, now: LocalInstant, entry: Arc<LockEntry>, order: Order) -> Option<LockId> {
        let order = match order {
            Order::Compete(candidacy) => return self.admit(now, entry, candidacy),
            order => order,
        };
        let lock = *self.names.get(&entry.name)?;
        let lock_run = self.locks.get_mut(lock.0 as usize)?.as_deref_mut()?;
        let is_elector_dropped = matches!(order, Order::ElectorDropped);
        // The candidacy that the order ends may still wait for its turn. If so, it is removed here, and its caller gets
        // `NeverLed`.
        let waited = lock_run.next.take_if(|(next, _)| !is_elector_dropped && Arc::ptr_eq(next, &entry));
        // If another elector of this name has sent the order, it must not end this candidacy.
        if waited.is_some() || !Arc::ptr_eq(&lock_run.entry, &entry) {
            return Some(lock);
        }
        if is_elector_dropped {
            self.orphaned.insert(lock);
            return Some(lock);
        }
        if let (Order::CallDropped, Some(open)) = (order, &lock_run.term_runner.open) {
            // The caller has dropped the future of its call, so the work gets no time to stop.
            open.stop();
            self.dropped_work.drop_work(open);
        }
        // Needed for a drop, too: on this command, the machine releases the lock as soon as the work no longer runs.
        self.handle(now, Input::Command { lock, command: Command::Stop });
        Some(lock)
    }

    /// Lets an elector compete, as soon as the last candidacy for its lock has ended. Returns the lock, if this run has it.
    pub(super) fn admit(
        &mut self,
        now: LocalInstant,
        entry: Arc<LockEntry>,
        candidacy: Box<Candidacy>,
    ) -> Option<LockId> {
        let known = self.names.get(&entry.name).copied();
        if candidacy.done.is_closed() {
            // The caller has dropped this candidacy.
            return known;
        }
        let lock = known.unwrap_or_else(|| {
            let lock = self.member.add_lock(&entry.name);
            let index = lock.0 as usize;
            // The machine reuses the numbers of removed locks, so this list does not grow longer than the machine's.
            self.locks.resize_with(self.locks.len().max(index + 1), || None);
            self.locks[index] = Some(Box::new(LockRun::new(Arc::clone(&entry))));
            self.names.insert(Arc::clone(&entry.name), lock);
            lock
        });
        let lock_run = self.locks.get_mut(lock.0 as usize)?.as_deref_mut()?;
        if lock_run.candidacy.is_some() {
            // A lock has one candidacy at a time, so this one waits.
            lock_run.next = Some((entry, candidacy));
            return Some(lock);
        }
        if !Arc::ptr_eq(&lock_run.entry, &entry) {
            lock_run.change_elector(now, entry);
            self.orphaned.remove(&lock);
        }
        let (stand_back, ends_with_work) = (candidacy.stand_back, candidacy.work.ends_term());
        let (job, one_attempt) = (candidacy.work.job(), candidacy.work.is_one_attempt());
        lock_run.term_runner.report.for_job(job.as_ref());
        lock_run.candidacy = Some(candidacy);
        self.handle(now, Input::Compete { lock, stand_back, ends_with_work, job, one_attempt });
        Some(lock)
    }

    /// Forgets a lock whose elector was dropped, unless the lock still has to be released.
    pub(super) fn forget_if_orphaned(&mut self, lock: LockId) {
        let Some(lock_run) = self.locks.get(lock.0 as usize).and_then(Option::as_ref) else { return };
        if lock_run.candidacy.is_none() && self.orphaned.contains(&lock) && self.member.remove_lock(lock) {
            self.orphaned.remove(&lock);
            self.names.remove(&lock_run.entry.name);
            self.locks[lock.0 as usize] = None;
        }
    }

    /// Handles the answer to a request: first the reports get it, then the machine. Returns the lock that the request
    /// was about, if any.
    fn answered(&mut self, now: LocalInstant, done: Done) -> Option<LockId> {
        let Done { reply, asked, outcome, error } = done;
        if let Some(error) = &error {
            let about = match &reply {
                // The record of another session. A message from its process would be an `Input::Message`.
                Reply::Input(Input::Peer { answer: Answer::Read(_), .. }) => About::AnotherSession,
                _ => About::AnythingElse,
            };
            self.failures.log(now, error, about);
        }
        let input = match reply {
            Reply::Input(input) => input,
            Reply::Locks(page) => Input::Locks(page.map(|Page { listed, next }| {
                // The prefix may hold locks for which this process has no elector.
                let id = |(name, version): (Arc<str>, _)| Some((*self.names.get(&name)?, version));
                Page { listed: listed.into_iter().filter_map(id).collect(), next }
            })),
        };
        let lock = match &input {
            Input::Lock { lock, answer } => {
                // A lock's record is never renewed, so its handle shows the renewals of the session that the record names.
                let session = asked.shown(answer).flatten().and_then(|(record, _)| record.session.as_deref());
                let renewal = session.map(|session| self.view.renewal_of(now, session));
                if let Some(lock_run) = self.locks.get_mut(lock.0 as usize).and_then(Option::as_deref_mut) {
                    let describe = || self.shared.settings.fleet.describe_lock(&lock_run.entry.name);
                    let noticed = lock_run.anomalies.answered(&asked, answer, self.entropy, describe);
                    if let Some((_, error)) = &noticed.spurious_conflict {
                        self.failures.log(now, error, About::AnythingElse);
                    }
                    lock_run.term_runner.report.answered(now, &asked, answer, error.as_ref(), &noticed, renewal);
                }
                Some(*lock)
            }
            Input::Own { answer, .. } => {
                let describe = || self.shared.settings.fleet.describe();
                let noticed = self.anomalies.answered(&asked, answer, self.entropy, describe);
                self.view.answered(now, asked.operation, outcome, error.as_ref());
                self.view.meters.answered_own(now, &asked, outcome);
                self.view.report_progress(self.member.progress(now));
                if let Some((operation, error)) = &noticed.spurious_conflict {
                    self.failures.log(now, error, About::AnythingElse);
                    self.view.failed(now, *operation, error);
                }
                None
            }
            _ => {
                self.view.answered(now, asked.operation, outcome, error.as_ref());
                None
            }
        };
        self.handle(now, input);
        self.view.meters.sees(self.member.sessions());
        lock
    }

    pub(super) fn lock_run(&mut self, lock: LockId) -> Option<&mut LockRun> {
        self.locks.get_mut(lock.0 as usize)?.as_deref_mut()
    }

    pub(super) fn close_window(&mut self) {
        if let Some(window) = self.window.take() {
            window.close();
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.close_window();
        self.shared.line.clear();
        // The state comes first, so that a later candidacy waits for the next run. Then the unread orders are dropped
        // with their candidacies, so that the callers get `NeverLed`.
        self.shared.set_state(State::Idle);
        while self.calls.try_recv().is_ok() {}
    }
}
