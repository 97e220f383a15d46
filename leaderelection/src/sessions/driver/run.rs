//! One run of a session: the steps of the state machine, and its effects.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::unconstrained;

use super::log::{self, About, Failures};
use super::orders::{Candidacy, Order, State};
use super::request::{Done, Pending, Reply};
use super::shared::{Call, LockEntry, Shared};
use super::slot::Slot;
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

/// One run of a session's loop.
pub(super) struct Run<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) entropy: &'a mut Entropy,
    pub(super) failures: &'a mut Failures,
    pub(super) member: Member,
    /// The locks that an elector has competed for, by their numbers.
    pub(super) slots: Vec<Option<Box<Slot>>>,
    pub(super) names: HashMap<Arc<str>, LockId>,
    /// The locks whose electors were dropped.
    pub(super) orphaned: BTreeSet<LockId>,
    /// The window of the open session and of all its terms.
    pub(super) window: Option<Arc<Window>>,
    /// The open session's leadership, and its messages to the other members.
    pub(super) reported: Option<(Leadership, Led)>,
    pub(super) requests: FuturesUnordered<Pending>,
    /// The number of locks that are led.
    pub(super) leads: usize,
    /// The number that was last logged, and the moment of that line.
    pub(super) leads_told: (usize, LocalInstant),
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
    /// Returns `true` for an order that the work of a term gave to its own elector.
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
        shared.is_now(State::Runs);
        Self {
            shared,
            entropy,
            failures,
            member: Member::new(shared.settings.rules.clone()),
            slots: Vec::new(),
            names: HashMap::new(),
            orphaned: BTreeSet::new(),
            window: None,
            reported: None,
            requests: FuturesUnordered::new(),
            leads: 0,
            leads_told: (0, LocalInstant::default()),
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
                    // If the process was frozen, events that have happened are taken before deadlines that are due.
                    tokio::task::yield_now().await;
                }
                None => std::future::pending().await,
            }
        };
        let call = tokio::select! {
            biased;
            // If many electors begin at once, one listing then shows all their locks.
            Some(call) = unconstrained(self.calls.recv()) => call,
            () = stop => return Event::Input(Input::Tick),
            Some(done) = self.requests.next() => return Event::Done(done),
            () = tick => return Event::Input(Input::Tick),
            // Endless messages of a member must not keep the session from anything else.
            (session, message) = self.shared.line.inbox.next() => return Event::Input(Input::Message { session, message }),
        };
        match call {
            Call::Order(entry, order) => Event::Order(entry, order),
            // The event may have been taken with an earlier notification, or with its term.
            Call::Term(name) => self.event_of_term(&name).unwrap_or(Event::Input(Input::Tick)),
        }
    }

    fn event_of_term(&mut self, name: &str) -> Option<Event> {
        let lock = *self.names.get(name)?;
        match self.slot(lock)?.next_event()? {
            election::Input::Command(command) => Some(Event::Input(Input::Command { lock, command })),
            election::Input::WorkEnded(end) => Some(Event::Input(Input::WorkEnded { lock, end })),
            _ => None,
        }
    }

    /// Reads the clock once, takes one step of the machine, and carries out all effects of that step.
    pub(super) fn step(&mut self, woken: Event) {
        let now = self.shared.settings.basics.clock.now();
        let is_quiet = matches!(woken, Event::Input(Input::Tick));
        if is_quiet {
            // If the process was frozen, messages that have arrived are taken before a deadline finds the peer silent.
            for (session, message) in self.shared.line.inbox.take() {
                self.handle(now, Input::Message { session, message });
            }
        }
        let lock = match woken {
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
        // In order, and with the same time (rule 8: a stop is carried out before any request of the same step).
        while let Some(effect) = self.member.next() {
            self.carry_out(now, effect);
        }
        if let Some(lock) = lock {
            self.forget_if_orphaned(lock);
        }
        let pause = self.shared.settings.rules.election.retry_period;
        // Thousands of locks may come and go within one retry period, so one line reports all of them.
        if is_quiet && self.leads != self.leads_told.0 && self.leads_told.1 + pause <= now {
            self.leads_told = (self.leads, now);
            log::leads(self.leads);
        }
    }

    pub(super) fn handle(&mut self, now: LocalInstant, input: Input) {
        self.member.handle(now, input, self.entropy.at(now));
    }

    /// Carries out an order of an elector. Returns the lock, if the session has it.
    fn apply(&mut self, now: LocalInstant, entry: Arc<LockEntry>, order: Order) -> Option<LockId> {
        let order = match order {
            Order::Compete(candidacy) => return self.admit(now, entry, candidacy),
            order => order,
        };
        let lock = *self.names.get(&entry.name)?;
        let slot = self.slots.get_mut(lock.0 as usize)?.as_deref_mut()?;
        let is_leave = matches!(order, Order::Leave);
        // The last candidacy of this elector may still be waiting. Dropping it answers its caller.
        let waited = slot.next.take_if(|(next, _)| !is_leave && Arc::ptr_eq(next, &entry));
        // A later elector of the same name must not end this candidacy.
        if waited.is_some() || !Arc::ptr_eq(&slot.entry, &entry) {
            return Some(lock);
        }
        if is_leave {
            self.orphaned.insert(lock);
            return Some(lock);
        }
        if let (Order::Drop, Some(open)) = (order, &slot.term_runner.open) {
            // Nobody waits for this work any more, so it gets no time to stop. Its lock is released when it is gone.
            open.stop();
            self.dropped_work.drop_work(open);
        }
        // After a drop as well: the machine releases the lock when the work is gone.
        self.handle(now, Input::Command { lock, command: Command::Stop });
        Some(lock)
    }

    /// Lets an elector compete, as soon as the last candidacy for its lock has ended. Returns the lock.
    pub(super) fn admit(
        &mut self,
        now: LocalInstant,
        entry: Arc<LockEntry>,
        candidacy: Box<Candidacy>,
    ) -> Option<LockId> {
        let known = self.names.get(&entry.name).copied();
        if candidacy.done.is_closed() {
            // Nobody waits for it any more.
            return known;
        }
        let lock = known.unwrap_or_else(|| {
            let lock = self.member.add_lock(&entry.name);
            let index = lock.0 as usize;
            // The machine reuses the numbers of removed locks, so this list stays as short as its own.
            self.slots.resize_with(self.slots.len().max(index + 1), || None);
            self.slots[index] = Some(Box::new(Slot::new(Arc::clone(&entry))));
            self.names.insert(Arc::clone(&entry.name), lock);
            lock
        });
        let slot = self.slots.get_mut(lock.0 as usize)?.as_deref_mut()?;
        if slot.candidacy.is_some() {
            // A lock has one term at a time.
            slot.next = Some((entry, candidacy));
            return Some(lock);
        }
        if !Arc::ptr_eq(&slot.entry, &entry) {
            slot.pass_on(now, entry);
            self.orphaned.remove(&lock);
        }
        let (stand_back, ends_with_work) = (candidacy.stand_back, candidacy.work.ends_term());
        let (job, one_attempt) = (candidacy.work.job(), candidacy.work.is_one_attempt());
        slot.term_runner.report.for_job(job.as_ref());
        slot.candidacy = Some(candidacy);
        self.handle(now, Input::Compete { lock, stand_back, ends_with_work, job, one_attempt });
        Some(lock)
    }

    /// Forgets a lock whose elector was dropped, as soon as nothing about it can matter any more.
    pub(super) fn forget_if_orphaned(&mut self, lock: LockId) {
        let Some(slot) = self.slots.get(lock.0 as usize).and_then(Option::as_ref) else { return };
        // The machine keeps a lock that may still name this session: somebody has to release it.
        if slot.candidacy.is_none() && self.orphaned.contains(&lock) && self.member.remove_lock(lock) {
            self.orphaned.remove(&lock);
            self.names.remove(&slot.entry.name);
            self.slots[lock.0 as usize] = None;
        }
    }

    /// Returns the lock of the answer, if it is about one.
    fn answered(&mut self, now: LocalInstant, done: Done) -> Option<LockId> {
        let Done { reply, asked, answered, error } = done;
        if let Some(error) = &error {
            let about = match &reply {
                Reply::Input(Input::Peer { answer: Answer::Read(_), .. }) => About::AnotherSession,
                _ => About::Others,
            };
            self.failures.tell(now, error, about);
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
                // The lock's record is not renewed. A handle shows the renewals of the session that it names.
                let session = asked.shown(answer).flatten().and_then(|(record, _)| record.session.as_deref());
                let renewal = session.map(|session| self.view.renewal_of(now, session));
                if let Some(slot) = self.slots.get_mut(lock.0 as usize).and_then(Option::as_deref_mut) {
                    let describe = || self.shared.settings.place.describe_lock(&slot.entry.name);
                    let noticed = slot.anomalies.answered(&asked, answer, self.entropy, describe);
                    if let Some((_, error)) = &noticed.refused {
                        self.failures.tell(now, error, About::Others);
                    }
                    slot.term_runner.report.answered(now, &asked, answer, error.as_ref(), &noticed, renewal);
                }
                Some(*lock)
            }
            Input::Own { answer, .. } => {
                let describe = || self.shared.settings.place.describe();
                let noticed = self.anomalies.answered(&asked, answer, self.entropy, describe);
                self.view.answered(now, asked.operation, answered, error.as_ref());
                self.view.meters.answered_own(now, &asked, answered);
                self.view.works(self.member.progress(now));
                if let Some((operation, error)) = &noticed.refused {
                    self.failures.tell(now, error, About::Others);
                    self.view.failed(now, *operation, error);
                }
                None
            }
            _ => {
                self.view.answered(now, asked.operation, answered, error.as_ref());
                None
            }
        };
        self.handle(now, input);
        self.view.meters.sees(self.member.sessions());
        lock
    }

    pub(super) fn slot(&mut self, lock: LockId) -> Option<&mut Slot> {
        self.slots.get_mut(lock.0 as usize)?.as_deref_mut()
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
        self.shared.line.quiet();
        // A later candidacy waits for the next run. Candidacies that this run has not seen are answered when they are dropped, like those
        // of the locks when the slots are dropped.
        self.shared.is_now(State::Rests);
        while self.calls.try_recv().is_ok() {}
    }
}
