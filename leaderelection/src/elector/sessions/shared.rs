//! The part of a session that its electors share with its driver.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::common::Common;
use super::seat::{LockSeat, Orders};
use super::settings::Settings;
use crate::elector::term::EarlierWork;
use crate::health::{HealthCheck, Unhealthy};
use crate::store_check::StoreUnfit;

/// The electors, and the way of their orders to the driver.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) common: Arc<Common>,
    desk: Mutex<Desk>,
    /// The refusal of the store in the last run.
    unfit: Mutex<Option<StoreUnfit>>,
    pub(super) span: tracing::Span,
}

#[derive(Debug, Default)]
struct Desk {
    electors: HashMap<Arc<str>, Arc<LockSeat>>,
    /// The work that outlived its elector.
    left_behind: HashMap<Arc<str>, EarlierWork>,
    /// `true` while the session runs. Orders that are given meanwhile are in the queue.
    runs: bool,
    queue: VecDeque<Arc<LockSeat>>,
}

/// The reason for which the driver attends to a lock.
#[derive(Debug)]
pub(super) enum Call {
    /// The term of the lock of this name may have news.
    Term(Arc<str>),
    /// The elector has orders.
    Orders(Arc<LockSeat>),
}

impl Deref for Shared {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        let (prefix, identity) = (settings.place.describe(), &settings.rules.election.identity);
        let span = tracing::error_span!("session", name = settings.name, prefix, identity);
        Self { common: Arc::new(Common::new(settings)), desk: Mutex::default(), unfit: Mutex::default(), span }
    }

    /// Adds an elector. Returns `false` if there is an elector of this name.
    pub(super) fn join(&self, seat: &Arc<LockSeat>) -> bool {
        let mut desk = self.desk();
        if desk.electors.contains_key(&seat.name) {
            return false;
        }
        if let Some(work) = desk.left_behind.remove(&seat.name) {
            seat.remember_work(work);
        }
        desk.electors.insert(Arc::clone(&seat.name), Arc::clone(seat));
        true
    }

    /// Removes an elector that is dropped.
    pub(super) fn leave(&self, seat: &Arc<LockSeat>) {
        let mut desk = self.desk();
        desk.electors.remove(&seat.name);
        desk.left_behind.retain(|_, work| !work.has_ended());
        let work = seat.earlier_work();
        if !work.has_ended() {
            desk.left_behind.insert(Arc::clone(&seat.name), work);
        }
        drop(desk);
        self.order(seat, |orders| orders.gone = true);
    }

    /// Changes the orders of an elector, and tells the driver.
    pub(super) fn order<T>(&self, seat: &Arc<LockSeat>, change: impl FnOnce(&mut Orders) -> T) -> T {
        let mut desk = self.desk();
        let mut orders = seat.orders();
        let output = change(&mut orders);
        if desk.runs && !std::mem::replace(&mut orders.queued, true) {
            desk.queue.push_back(Arc::clone(seat));
            self.bell.notify_one();
        }
        output
    }

    /// The next lock to attend to. The news of terms come first. Cancellation safe.
    pub(super) async fn next_call(&self) -> Call {
        loop {
            if let Some(call) = self.call() {
                return call;
            }
            self.bell.notified().await;
        }
    }

    fn call(&self) -> Option<Call> {
        if let Some(lock) = self.next_news() {
            return Some(Call::Term(lock));
        }
        let mut desk = self.desk();
        let seat = desk.queue.pop_front()?;
        seat.orders().queued = false;
        Some(Call::Orders(seat))
    }

    /// Puts all orders into the queue that were given before the session ran.
    pub(super) fn begin_run(&self) {
        let mut desk = self.desk();
        let seats: VecDeque<_> = desk.electors.values().cloned().collect();
        seats.iter().for_each(|seat| seat.orders().queued = true);
        (desk.runs, desk.queue) = (true, seats);
        self.forget_news();
    }

    /// Answers the candidates that the driver has not seen. A candidate that comes later waits for the next run.
    pub(super) fn end_run(&self) {
        let mut desk = self.desk();
        desk.runs = false;
        let queue = std::mem::take(&mut desk.queue);
        drop(desk);
        for seat in queue {
            let candidacy = {
                let mut orders = seat.orders();
                orders.queued = false;
                orders.candidacy.take()
            };
            // The caller's code is dropped outside of the lock.
            drop(candidacy);
        }
    }

    /// Checks every elector.
    pub(super) fn check_health(&self, tolerated_delay: Duration) -> Result<(), Unhealthy> {
        let seats: Vec<_> = self.desk().electors.values().cloned().collect();
        seats.iter().try_for_each(|seat| self.health_check(seat, tolerated_delay).check())
    }

    pub(super) fn health_check(&self, seat: &LockSeat, tolerated_delay: Duration) -> HealthCheck {
        HealthCheck::new(
            seat.status.watch(),
            seat.full_name(),
            self.settings.rules.election.lease_duration,
            tolerated_delay,
        )
    }

    pub(super) fn set_unfit(&self, unfit: Option<StoreUnfit>) {
        *self.unfit.lock().unwrap_or_else(PoisonError::into_inner) = unfit;
    }

    pub(super) fn unfit(&self) -> Option<StoreUnfit> {
        self.unfit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // No code that could panic runs under the locks.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
