//! The locks and tasks of the code whose interleavings are explored: the explorer puts its own in their place.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use tokio::spawn;
pub(crate) use tokio::sync::Notify;
pub(crate) use tokio::task::AbortHandle;
