//! The library's mutexes and tasks. Tests that explore interleavings replace this module.

pub(crate) use std::sync::MutexGuard;

pub(crate) use tokio::spawn;
pub(crate) use tokio::sync::Notify;
pub(crate) use tokio::task::AbortHandle;

/// A mutex that ignores poisoning: whoever holds it leaves its data consistent, even in a panic.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(data: T) -> Self {
        Self(std::sync::Mutex::new(data))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
