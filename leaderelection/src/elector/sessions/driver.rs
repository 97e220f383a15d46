//! The loop that drives the state machine of sessions, as the driver of an elector drives an election. The loop knows
//! none of the protocol's rules.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::log;
use super::request::{self, Done, Pending};
use super::settings::Settings;
use super::shared::Shared;
use super::slot::{Candidacy, LockSeat, Order, Slot};
use crate::clock::LocalInstant;
use crate::election::{self, BeginReason, Command, RunOutcome, Term};
use crate::elector::fitness::Fitness;
use crate::elector::stamper::Stamper;
use crate::elector::term::{OpenTerm, TermEvents};
use crate::leadership::Leadership;
use crate::leadership::window::Window;
use crate::session::{DrawSession, Effect, Fact, Input, LockId, Member};
use crate::store::{StoreErrorKind, Version};
use crate::store_check::StoreUnfit;

/// The part of a session's driver that outlives a run.
#[derive(Debug)]
pub(super) struct Driver {
    orders: mpsc::UnboundedReceiver<Order>,
    seats: Vec<Arc<LockSeat>>,
    stamper: Stamper,
    fitness: Fitness,
}

/// One run of the loop.
struct Run<'a> {
    shared: &'a Arc<Shared>,
    driver: &'a mut Driver,
    member: Member,
    slots: Vec<Slot>,
    /// The window of the open session, which is that of all its terms.
    window: Option<Arc<Window>>,
    requests: FuturesUnordered<Pending>,
    terms: FuturesUnordered<BoxFuture<'static, Event>>,
    /// Work was told to be dropped, and has had no turn since.
    work_is_due: bool,
    ended: bool,
}

/// An event of a term, and the source of its next events.
struct Event {
    lock: LockId,
    input: election::Input,
    events: TermEvents,
}

/// The event that woke the loop.
enum Woken {
    Input(Input),
    Order(Order),
    Done(Done),
    Term(Event),
}

impl Driver {
    pub(super) fn new(settings: &Settings, orders: mpsc::UnboundedReceiver<Order>) -> Self {
        let stamper = Stamper::new(Arc::clone(&settings.clock), settings.seed);
        Self { orders, seats: Vec::new(), stamper, fitness: Fitness::default() }
    }

    /// Runs until `cancel` is cancelled.
    pub(super) async fn run(&mut self, shared: &Arc<Shared>, cancel: &CancellationToken) -> Result<(), StoreUnfit> {
        let Self { fitness, stamper, .. } = self;
        let (settings, check) = (&shared.settings, shared.settings.store_check.as_deref());
        let fit = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(()),
            fit = fitness.demand(check, || Ok(settings.candidacy(stamper.new_id()))) => fit,
        };
        shared.set_unfit(fit.as_ref().err().cloned());
        if fit.is_err() {
            // Nobody waits for a session that never opens.
            self.take_orders();
            return fit;
        }
        self.drive(shared, cancel).await;
        Ok(())
    }

    async fn drive(&mut self, shared: &Arc<Shared>, cancel: &CancellationToken) {
        let mut run = Run::new(shared, self);
        let mut cancel_told = false;
        let mut woken = Woken::Input(Input::Begin);
        loop {
            run.step(woken);
            if run.ended {
                return;
            }
            if std::mem::take(&mut run.work_is_due) {
                // Work that awaits is gone after its next turn, and must not be given up before that turn.
                let _ = tokio::spawn(std::future::ready(())).await;
            }
            woken = run.wait(cancel, &mut cancel_told).await;
        }
    }
}

impl Driver {
    /// Takes the orders that nobody carries out, and keeps the locks.
    fn take_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            if let Order::Add(seat) = order {
                self.seats.push(seat);
            }
        }
    }
}

impl DrawSession for Stamper {
    fn session(&mut self) -> Arc<str> {
        self.new_id().into()
    }
}

impl<'a> Run<'a> {
    fn new(shared: &'a Arc<Shared>, driver: &'a mut Driver) -> Self {
        let mut member = Member::new(shared.settings.rules.clone());
        let slots: Vec<Slot> = driver.seats.iter().map(|seat| Slot::new(Arc::clone(seat))).collect();
        for seat in &driver.seats {
            member.add_lock(&seat.name);
        }
        shared.set_runs(true);
        Self {
            shared,
            driver,
            member,
            slots,
            window: None,
            requests: FuturesUnordered::new(),
            terms: FuturesUnordered::new(),
            work_is_due: false,
            ended: false,
        }
    }

    async fn wait(&mut self, cancel: &CancellationToken, cancel_told: &mut bool) -> Woken {
        let (clock, wake_at) = (&*self.shared.settings.clock, self.member.wake_at());
        let tick = async {
            match wake_at {
                Some(wake_at) => {
                    clock.sleep_until(wake_at).await;
                    // After a stop of the process, events that have happened come before deadlines that are due.
                    tokio::task::yield_now().await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(event) = self.terms.next() => Woken::Term(event),
            Some(order) = self.driver.orders.recv() => Woken::Order(order),
            () = cancel.cancelled(), if !*cancel_told => {
                *cancel_told = true;
                Woken::Input(Input::Stop)
            }
            Some(done) = self.requests.next() => Woken::Done(done),
            () = tick => Woken::Input(Input::Tick),
        }
    }

    /// Reads the clock once, takes one step of the machine, and carries out all effects of that step.
    fn step(&mut self, woken: Woken) {
        let now = self.shared.settings.clock.now();
        match woken {
            Woken::Input(input) => self.handle(now, input),
            Woken::Order(order) => self.obey(now, order),
            Woken::Done(done) => self.answered(now, done),
            Woken::Term(Event { lock, input, events }) => {
                let input = match input {
                    election::Input::Command(command) => {
                        self.terms.push(next_event(lock, events));
                        Input::Command { lock, command }
                    }
                    election::Input::WorkEnded(end) => Input::WorkEnded { lock, end },
                    _ => return,
                };
                self.handle(now, input);
            }
        }
        while let Some(effect) = self.member.next() {
            self.carry_out(now, effect);
        }
    }

    fn handle(&mut self, now: LocalInstant, input: Input) {
        self.member.handle(now, input, self.driver.stamper.at(now));
    }

    fn obey(&mut self, now: LocalInstant, order: Order) {
        match order {
            Order::Add(seat) => {
                self.member.add_lock(&seat.name);
                self.slots.push(Slot::new(Arc::clone(&seat)));
                self.driver.seats.push(seat);
            }
            // The elector has gone away before its order was read.
            Order::Compete { candidacy, .. } if candidacy.done.is_closed() => {}
            Order::Compete { lock, candidacy } => self.compete(now, lock, candidacy),
            Order::Command { lock, command } => match self.slot(lock).and_then(|slot| slot.next.take()) {
                Some(waiting) => drop(waiting.done.send(RunOutcome::NeverLed)),
                None => self.handle(now, Input::Command { lock, command }),
            },
            Order::Dropped { lock } => {
                if let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) {
                    open.stop();
                    open.drop_work();
                    self.work_is_due = true;
                }
                self.handle(now, Input::Command { lock, command: Command::Stop });
            }
        }
    }

    fn compete(&mut self, now: LocalInstant, lock: LockId, candidacy: Box<Candidacy>) {
        let (stand_back, ends_with_work) = (candidacy.stand_back, candidacy.work.ends_term());
        let Some(slot) = self.slot(lock) else { return };
        if slot.candidacy.is_some() {
            slot.next = Some(candidacy);
            return;
        }
        slot.candidacy = Some(candidacy);
        self.handle(now, Input::Compete { lock, stand_back, ends_with_work });
    }

    fn answered(&mut self, now: LocalInstant, done: Done) {
        let Done { input, operation, answered, sent_at, error } = done;
        let clock = Arc::clone(&self.shared.settings.clock);
        if let Input::Lock { lock, answer } = &input
            && let Some(slot) = self.slots.get_mut(lock.0 as usize)
        {
            let report = slot.report(&clock);
            report.answered(now, (operation, sent_at), answered, error.as_ref());
            if let election::Answer::Read(Ok(found)) = answer {
                report.observed(now, found.as_ref().map(|found| (&found.record, &found.version)));
            }
        } else if let Some(error) = &error {
            log::failed(error);
        }
        self.handle(now, input);
    }

    fn carry_out(&mut self, now: LocalInstant, effect: Effect) {
        let clock = Arc::clone(&self.shared.settings.clock);
        let place = self.shared.settings.place.clone();
        match effect {
            Effect::Own { session, request } => {
                let key = place.session(&session);
                let input = |answer| Input::Own { session, answer };
                self.requests.push(request::about_record(place, key, request, now, input));
            }
            Effect::Peer { session, request } => {
                self.requests.push(request::about_peer(place, session, request, now));
            }
            Effect::ListSessions => self.requests.push(request::list_sessions(place, now)),
            Effect::Lock { lock, request } => {
                let Some(slot) = self.slot(lock) else { return };
                slot.report(&clock).sending(request.operation());
                let key = place.lock(&slot.seat.name);
                let input = move |answer| Input::Lock { lock, answer };
                self.requests.push(request::about_record(place, key, request, now, input));
            }
            Effect::ListLocks => {
                let shared = Arc::clone(self.shared);
                let ids = move |listed: Vec<(String, Option<Version>)>| {
                    let names = shared.names();
                    let id = |(name, version): (String, Option<Version>)| Some((LockId(*names.get(&*name)?), version));
                    listed.into_iter().filter_map(id).collect()
                };
                self.requests.push(request::list_locks(place, now, ids));
            }
            Effect::Start { lock, term, reason } => self.start(lock, term, reason),
            Effect::Extend { valid_until } => self.extend(valid_until),
            Effect::Stop { lock, fencing_token, reason, .. } => {
                let Some(slot) = self.slot(lock) else { return };
                if let Some(open) = &slot.open {
                    open.leadership.close();
                }
                slot.report(&clock).stopped(fencing_token, reason);
                if let Some(open) = &slot.open {
                    open.stop();
                }
            }
            Effect::DropWork { lock } => {
                let Some(slot) = self.slot(lock) else { return };
                if let Some(open) = &slot.open {
                    open.drop_work();
                    let fencing_token = open.leadership.fencing_token();
                    slot.report(&clock).dropped_work(fencing_token);
                    self.work_is_due = true;
                }
            }
            Effect::Abandon { lock } => {
                if let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) {
                    crate::elector::log::abandoned_work(open.leadership.fencing_token());
                    open.abandon();
                }
            }
            Effect::Finished { lock, outcome } => {
                let Some(slot) = self.slot(lock) else { return };
                slot.finish(outcome);
                if let Some(next) = slot.next.take() {
                    self.compete(now, lock, next);
                }
            }
            Effect::Ended => self.ended = true,
            Effect::Fact(fact) => self.report(now, fact),
        }
    }

    fn start(&mut self, lock: LockId, term: Term, reason: BeginReason) {
        let clock = Arc::clone(&self.shared.settings.clock);
        let window = Arc::clone(self.window.get_or_insert_with(|| Arc::new(Window::new(&term))));
        let Some(slot) = self.slots.get_mut(lock.0 as usize) else { return };
        let Some(start) = slot.candidacy.as_ref().map(|candidacy| candidacy.work.prepare()) else { return };
        let leadership = Leadership::of_session(term.fencing_token, window, Arc::clone(&clock));
        slot.report(&clock).started(&leadership, reason);
        let (on_stop, status) = (slot.seat.callbacks.on_stop_leading.clone(), slot.seat.status.clone());
        let (open, events) = OpenTerm::start(leadership, start, on_stop, status, None);
        slot.open = Some(open);
        self.terms.push(next_event(lock, events));
    }

    fn extend(&mut self, valid_until: LocalInstant) {
        let settings = &self.shared.settings;
        let sent_at = valid_until - settings.rules.election.renew_deadline;
        let term = Term { fencing_token: 0, sent_at, valid_until };
        let Some(window) = &self.window else { return };
        if !window.extend(&term, &*settings.clock) {
            let now = settings.clock.now();
            self.handle(now, Input::Expired);
        }
    }

    fn report(&mut self, now: LocalInstant, fact: Fact) {
        let clock = Arc::clone(&self.shared.settings.clock);
        match fact {
            Fact::Opened { session } => {
                self.window = None;
                log::opened(&session);
            }
            Fact::Closed { session, reason } => {
                self.close_window();
                log::closed(&session, reason.as_ref());
            }
            Fact::Own(_) => {}
            Fact::PeerEnded { session } => log::peer_ended(&session),
            Fact::IdentityClash { session } => log::identity_clash(&session),
            Fact::Acquired { lock, fencing_token } => {
                self.tell(lock, election::Fact::Acquired { fencing_token });
            }
            Fact::Released { lock } => self.tell(lock, election::Fact::Released),
            Fact::LeaderChanged { lock, leader } => self.tell(lock, election::Fact::LeaderChanged { leader }),
            Fact::Refused { lock, refusal } => {
                let place = self.shared.settings.place.clone();
                let Some(slot) = self.slot(lock) else { return };
                log::refused(&slot.seat.name, &refusal);
                let name = place.describe_lock(&slot.seat.name);
                let error =
                    crate::LockError::new(StoreErrorKind::Unreadable, "cannot lead lock", name, refusal.to_string());
                slot.report(&clock).failed(now, election::Operation::Get, &error);
            }
        }
    }

    fn tell(&mut self, lock: LockId, fact: election::Fact) {
        let clock = Arc::clone(&self.shared.settings.clock);
        if let Some(slot) = self.slot(lock) {
            slot.report(&clock).fact(fact);
        }
    }

    fn slot(&mut self, lock: LockId) -> Option<&mut Slot> {
        self.slots.get_mut(lock.0 as usize)
    }

    fn close_window(&mut self) {
        if let Some(window) = self.window.take() {
            window.close();
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.close_window();
        self.shared.set_runs(false);
        // No candidacy waits for a driver that is gone.
        self.driver.take_orders();
    }
}

fn next_event(lock: LockId, mut events: TermEvents) -> BoxFuture<'static, Event> {
    Box::pin(async move {
        let input = events.next().await;
        Event { lock, input, events }
    })
}
