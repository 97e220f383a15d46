//! The loop that drives the state machine of sessions, as the driver of an elector drives an election. The loop knows
//! none of the protocol's rules.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

use super::log::{self, Failures};
use super::request::{self, Done, Pending, Reply};
use super::seat::{End, LockSeat};
use super::settings::Settings;
use super::shared::Shared;
use super::slot::Slot;
use super::view::View;
use crate::clock::LocalInstant;
use crate::election::{self, Answer, BeginReason, Command, Term, WorkEnd};
use crate::elector::fitness::Fitness;
use crate::elector::report::Report;
use crate::elector::stamper::Stamper;
use crate::elector::term::{OpenTerm, TermEvents};
use crate::leadership::Leadership;
use crate::leadership::window::Window;
use crate::session::{DrawSession, Effect, Fact, Input, LockId, Member};
use crate::store::StoreErrorKind;
use crate::store_check::StoreUnfit;

/// The part of a session's driver that outlives a run.
#[derive(Debug)]
pub(super) struct Driver {
    stamper: Stamper,
    fitness: Fitness,
    failures: Failures,
}

/// One run of the loop.
struct Run<'a> {
    shared: &'a Arc<Shared>,
    driver: &'a mut Driver,
    member: Member,
    /// The locks that an elector has competed for, by their numbers.
    slots: Vec<Option<Slot>>,
    names: HashMap<Arc<str>, LockId>,
    /// The locks whose electors were dropped.
    deserted: BTreeSet<LockId>,
    /// The window of the open session, which is that of all its terms.
    window: Option<Arc<Window>>,
    requests: FuturesUnordered<Pending>,
    terms: FuturesUnordered<BoxFuture<'static, Event>>,
    /// The number of locks that are led.
    leads: usize,
    /// The number that was last logged, and the moment of that line.
    leads_told: (usize, LocalInstant),
    view: View,
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
    Orders(Arc<LockSeat>),
    Done(Done),
    Term(Event),
}

impl Driver {
    pub(super) fn new(settings: &Settings) -> Self {
        let stamper = Stamper::new(Arc::clone(&settings.clock), settings.seed);
        let failures = Failures::new(settings.rules.election.lease_duration);
        Self { stamper, fitness: Fitness::default(), failures }
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
            shared.begin_run();
            shared.end_run();
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
            woken = run.wait(cancel, cancel_told).await;
            // One write frees all locks if the session ends before its electors, which often have the same token. A
            // transfer takes precedence over a cancellation at the same time, so the lock goes to the named candidate.
            let is_command = matches!(&woken, Woken::Term(event) if matches!(event.input, election::Input::Command(_)));
            if !cancel_told && !is_command && cancel.is_cancelled() {
                cancel_told = true;
                run.step(Woken::Input(Input::Stop));
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
        shared.begin_run();
        Self {
            shared,
            driver,
            member: Member::new(shared.settings.rules.clone()),
            slots: Vec::new(),
            names: HashMap::new(),
            deserted: BTreeSet::new(),
            window: None,
            requests: FuturesUnordered::new(),
            terms: FuturesUnordered::new(),
            leads: 0,
            leads_told: (0, LocalInstant::default()),
            view: View::new(shared),
            work_is_due: false,
            ended: false,
        }
    }

    async fn wait(&mut self, cancel: &CancellationToken, cancel_told: bool) -> Woken {
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
            () = cancel.cancelled(), if !cancel_told => Woken::Input(Input::Tick),
            // Many electors that begin at once are then looked up by one listing.
            seat = self.shared.next_order() => Woken::Orders(seat),
            Some(done) = self.requests.next() => Woken::Done(done),
            () = tick => Woken::Input(Input::Tick),
        }
    }

    /// Reads the clock once, takes one step of the machine, and carries out all effects of that step.
    fn step(&mut self, woken: Woken) {
        let now = self.shared.settings.clock.now();
        let is_quiet = matches!(woken, Woken::Input(Input::Tick));
        let lock = match woken {
            Woken::Input(input) => {
                self.handle(now, input);
                None
            }
            Woken::Orders(seat) => self.obey(now, seat),
            Woken::Done(done) => self.answered(now, done),
            Woken::Term(Event { lock, input, events }) => {
                self.term_event(now, lock, input, events);
                Some(lock)
            }
        };
        while let Some(effect) = self.member.next() {
            self.carry_out(now, effect);
        }
        if let Some(lock) = lock {
            self.forget_if_deserted(lock);
        }
        let pause = self.shared.settings.rules.election.retry_period;
        if is_quiet && self.leads != self.leads_told.0 && self.leads_told.1 + pause <= now {
            self.leads_told = (self.leads, now);
            log::leads(self.leads);
        }
    }

    fn term_event(&mut self, now: LocalInstant, lock: LockId, input: election::Input, events: TermEvents) {
        let input = match input {
            election::Input::Command(command) => {
                self.terms.push(next_event(lock, events));
                Input::Command { lock, command }
            }
            election::Input::WorkEnded(end) => {
                if end == WorkEnd::Panicked {
                    self.report(lock, |report| report.work_panicked());
                }
                Input::WorkEnded { lock, end }
            }
            _ => return,
        };
        self.handle(now, input);
    }

    fn handle(&mut self, now: LocalInstant, input: Input) {
        self.member.handle(now, input, self.driver.stamper.at(now));
    }

    /// Reads the orders of an elector. Returns the lock, if the session has it.
    fn obey(&mut self, now: LocalInstant, seat: Arc<LockSeat>) -> Option<LockId> {
        let (end, gone) = {
            let mut orders = seat.orders();
            (orders.end.take(), orders.gone)
        };
        if let Some(lock) = self.names.get(&seat.name).copied()
            && let Some(slot) = self.slot(lock)
        {
            slot.heir.take_if(|heir| gone && Arc::ptr_eq(heir, &seat));
            if Arc::ptr_eq(&slot.seat, &seat) {
                if end == Some(End::Dropped)
                    && let Some(open) = &slot.open
                {
                    open.stop();
                    open.drop_work();
                    self.work_is_due = true;
                }
                if end.is_some() {
                    self.handle(now, Input::Command { lock, command: Command::Stop });
                }
                if gone {
                    self.deserted.insert(lock);
                }
            }
        }
        self.admit(now, &seat);
        self.names.get(&seat.name).copied()
    }

    /// Lets an elector compete that wants to, as soon as the last candidacy for its lock has ended.
    fn admit(&mut self, now: LocalInstant, seat: &Arc<LockSeat>) {
        if seat.orders().candidacy.is_none() {
            return;
        }
        let (name, clock) = (&self.shared.settings.name, &self.shared.settings.clock);
        let lock = match self.names.get(&seat.name) {
            Some(lock) => *lock,
            None => {
                let lock = self.member.add_lock(&seat.name);
                let index = lock.0 as usize;
                self.slots.resize_with(self.slots.len().max(index + 1), || None);
                self.slots[index] = Some(Slot::new(Arc::clone(seat)));
                self.names.insert(Arc::clone(&seat.name), lock);
                lock
            }
        };
        let Some(slot) = self.slots.get_mut(lock.0 as usize).and_then(Option::as_mut) else { return };
        if slot.candidacy.is_some() {
            slot.heir = (!Arc::ptr_eq(&slot.seat, seat)).then(|| Arc::clone(seat));
            return;
        }
        if !Arc::ptr_eq(&slot.seat, seat) {
            slot.pass_on(Arc::clone(seat), name, clock);
            self.deserted.remove(&lock);
        }
        let Some(candidacy) = seat.orders().candidacy.take() else { return };
        let (stand_back, ends_with_work) = (candidacy.stand_back, candidacy.work.ends_term());
        slot.candidacy = Some(candidacy);
        self.handle(now, Input::Compete { lock, stand_back, ends_with_work });
    }

    /// Forgets a lock whose elector was dropped, as soon as nothing about it can matter any more.
    fn forget_if_deserted(&mut self, lock: LockId) {
        let Some(slot) = self.slots.get(lock.0 as usize).and_then(Option::as_ref) else { return };
        if slot.candidacy.is_none() && self.deserted.contains(&lock) && self.member.remove_lock(lock) {
            self.deserted.remove(&lock);
            self.names.remove(&slot.seat.name);
            self.slots[lock.0 as usize] = None;
        }
    }

    /// Returns the lock of the answer, if it is about one.
    fn answered(&mut self, now: LocalInstant, done: Done) -> Option<LockId> {
        let Done { reply, written, operation, answered, sent_at, error } = done;
        if let Some(error) = &error {
            self.driver.failures.tell(now, error);
        }
        let input = match reply {
            Reply::Input(input) => input,
            Reply::Locks(listed) => Input::Locks(listed.map(|listed| {
                let id = |(name, version): (String, _)| Some((*self.names.get(&*name)?, version));
                listed.into_iter().filter_map(id).collect()
            })),
        };
        let lock = match &input {
            Input::Lock { lock, answer } => {
                let observed = match (answer, &written) {
                    (Answer::Read(Ok(None)), _) => Some(None),
                    (Answer::Read(Ok(Some(found))), _) => Some(Some((&found.record, &found.version))),
                    (Answer::Written(Ok(version)), Some(record)) => Some(Some((&**record, version))),
                    _ => None,
                };
                let session = observed.flatten().and_then(|(record, _)| record.session.as_deref());
                let pulse = session.map(|session| self.view.pulse(now, session));
                self.report(*lock, |report| {
                    report.answered(now, (operation, sent_at), answered, error.as_ref());
                    if let Some(observed) = observed {
                        report.observed_of(now, observed, pulse);
                    }
                });
                Some(*lock)
            }
            input => {
                self.view.answered(now, input, (operation, sent_at), answered, error.as_ref());
                None
            }
        };
        self.handle(now, input);
        self.view.sees(self.member.sessions());
        lock
    }

    fn carry_out(&mut self, now: LocalInstant, effect: Effect) {
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
                self.report(lock, |report| report.sending(request.operation()));
                let Some(slot) = self.slot(lock) else { return };
                let key = place.lock(&slot.seat.name);
                let input = move |answer| Input::Lock { lock, answer };
                self.requests.push(request::about_record(place, key, request, now, input));
            }
            Effect::ListLocks => self.requests.push(request::list_locks(place, now)),
            Effect::Start { lock, term, reason } => self.start(lock, term, reason),
            Effect::Extend { valid_until } => self.extend(valid_until),
            Effect::Stop { lock, fencing_token, reason, .. } => {
                self.leads -= 1;
                self.view.leads(self.leads);
                let Some(slot) = self.slot(lock) else { return };
                if let Some(open) = &slot.open {
                    open.leadership.close();
                }
                self.report(lock, |report| report.stopped(fencing_token, reason));
                if let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) {
                    open.stop();
                }
            }
            Effect::DropWork { lock } => {
                let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) else { return };
                open.drop_work();
                let fencing_token = open.leadership.fencing_token();
                self.report(lock, |report| report.dropped_work(fencing_token));
                self.work_is_due = true;
            }
            Effect::Abandon { lock } => {
                let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) else { return };
                let fencing_token = open.leadership.fencing_token();
                self.report(lock, |report| report.abandoned_work(fencing_token));
                if let Some(open) = self.slot(lock).and_then(|slot| slot.open.as_ref()) {
                    open.abandon();
                }
            }
            Effect::Finished { lock, outcome } => {
                let Some(slot) = self.slot(lock) else { return };
                slot.finish(outcome);
                let next = slot.heir.take().unwrap_or_else(|| Arc::clone(&slot.seat));
                self.admit(now, &next);
            }
            Effect::Ended => self.ended = true,
            Effect::Fact(fact) => self.tell(now, fact),
        }
    }

    fn start(&mut self, lock: LockId, term: Term, reason: BeginReason) {
        self.leads += 1;
        self.view.began(self.leads, &reason);
        let clock = Arc::clone(&self.shared.settings.clock);
        let window = Arc::clone(self.window.get_or_insert_with(|| Arc::new(Window::new(&term))));
        let leadership = Leadership::of_session(term.fencing_token, window, clock);
        self.report(lock, |report| report.started(&leadership, reason));
        let Some(slot) = self.slot(lock) else { return };
        let Some(start) = slot.candidacy.as_ref().map(|candidacy| candidacy.work.prepare()) else { return };
        let (on_stop, status) = (slot.seat.callbacks.on_stop_leading.clone(), slot.seat.status.clone());
        let ended = slot.seat.track_work();
        let (open, events) = OpenTerm::start(leadership, start, on_stop, status, Some(ended));
        slot.open = Some(open);
        self.terms.push(next_event(lock, events));
    }

    fn extend(&mut self, valid_until: LocalInstant) {
        let settings = &self.shared.settings;
        let sent_at = valid_until - settings.rules.election.renew_deadline;
        let term = Term { fencing_token: 0, sent_at, valid_until };
        self.view.renewed(settings.clock.now());
        let Some(window) = &self.window else { return };
        if !window.extend(&term, &*settings.clock) {
            let now = settings.clock.now();
            self.handle(now, Input::Expired);
        }
    }

    fn tell(&mut self, now: LocalInstant, fact: Fact) {
        match fact {
            Fact::Opened { session } => {
                self.window = None;
                self.view.opened(now, &session);
            }
            Fact::Closed { session, reason } => {
                self.close_window();
                log::closed(&session, reason.as_ref());
                self.deserted.clone().into_iter().for_each(|lock| self.forget_if_deserted(lock));
            }
            Fact::Own(fact) => self.view.own(&fact),
            Fact::PeerSeen { session, since, lease } => self.view.saw_peer(now, &session, since, lease),
            Fact::PeerEnded { session } => self.view.peer_ended(&session),
            Fact::IdentityClash { session } => self.view.identity_clash(now, &session),
            Fact::Acquired { lock, fencing_token } => {
                self.report(lock, |report| report.fact(election::Fact::Acquired { fencing_token }));
            }
            Fact::Released { lock } => self.report(lock, |report| report.fact(election::Fact::Released)),
            Fact::ReleaseGivenUp { lock } => self.report(lock, |report| report.fact(election::Fact::ReleaseGivenUp)),
            Fact::LeaderChanged { lock, leader } => {
                self.report(lock, |report| report.fact(election::Fact::LeaderChanged { leader }));
            }
            Fact::Refused { lock, refusal } => {
                let place = self.shared.settings.place.clone();
                let Some(slot) = self.slot(lock) else { return };
                log::refused(&slot.seat.name, &refusal);
                let name = place.describe_lock(&slot.seat.name);
                let error =
                    crate::LockError::new(StoreErrorKind::Unreadable, "cannot lead lock", name, refusal.to_string());
                self.report(lock, |report| report.failed(now, election::Operation::Get, &error));
            }
        }
    }

    fn report(&mut self, lock: LockId, tell: impl FnOnce(&mut Report)) {
        let Settings { name, clock, .. } = &self.shared.settings;
        if let Some(slot) = self.slots.get_mut(lock.0 as usize).and_then(Option::as_mut) {
            tell(slot.report(name, clock));
        }
    }

    fn slot(&mut self, lock: LockId) -> Option<&mut Slot> {
        self.slots.get_mut(lock.0 as usize)?.as_mut()
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
        // The electors of the locks are answered when the slots are dropped.
        self.shared.end_run();
    }
}

fn next_event(lock: LockId, mut events: TermEvents) -> BoxFuture<'static, Event> {
    Box::pin(async move {
        let input = events.next().await;
        Event { lock, input, events }
    })
}
