//! The part of a session that its electors share with its driver.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::settings::Settings;
use super::slot::Order;
use crate::store_check::StoreUnfit;

/// The settings, the names of the locks, and the way of orders to the driver.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    orders: mpsc::UnboundedSender<Order>,
    names: Mutex<HashMap<Arc<str>, u32>>,
    /// The refusal of the store in the last run.
    unfit: Mutex<Option<StoreUnfit>>,
    /// `true` while the session runs, so that an order is carried out.
    runs: AtomicBool,
    pub(super) span: tracing::Span,
}

impl Shared {
    pub(super) fn new(settings: Settings, orders: mpsc::UnboundedSender<Order>) -> Self {
        let (prefix, identity) = (settings.place.describe(), &settings.rules.election.identity);
        let span = tracing::error_span!("session", name = settings.name, prefix, identity);
        Self { settings, orders, names: Mutex::default(), unfit: Mutex::default(), runs: AtomicBool::new(false), span }
    }

    pub(super) fn order(&self, order: Order) {
        // The receiver lives as long as this sender.
        let _ = self.orders.send(order);
    }

    pub(super) fn names(&self) -> MutexGuard<'_, HashMap<Arc<str>, u32>> {
        // No code that could panic runs under the lock.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_unfit(&self, unfit: Option<StoreUnfit>) {
        *self.unfit.lock().unwrap_or_else(PoisonError::into_inner) = unfit;
    }

    pub(super) fn unfit(&self) -> Option<StoreUnfit> {
        self.unfit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn runs(&self) -> bool {
        self.runs.load(Ordering::Acquire)
    }

    pub(super) fn set_runs(&self, runs: bool) {
        self.runs.store(runs, Ordering::Release);
    }
}
