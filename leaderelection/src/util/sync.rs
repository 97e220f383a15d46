//! The locks and tasks of the library. Where interleavings are explored, the explorer puts its own in their place.

pub(crate) use std::sync::MutexGuard;

pub(crate) use tokio::spawn;
pub(crate) use tokio::sync::Notify;
pub(crate) use tokio::task::AbortHandle;

/// A mutex without poison: its data is whole after every step of those who hold it, also if a step panics.
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
