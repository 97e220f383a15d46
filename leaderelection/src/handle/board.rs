//! A shared value that wakes its readers when it changes, like `tokio::sync::watch`. It takes 144 bytes instead of 408,
//! because a session has one for each of its locks.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::Notify;

#[derive(Debug)]
struct Board<T> {
    value: RwLock<T>,
    /// The number of calls of [`Writer::change`] so far.
    changes: AtomicU64,
    writers: AtomicUsize,
    changed: Notify,
}

/// The writing side. The board is closed when the last clone of its writer is dropped.
#[derive(Debug)]
pub(crate) struct Writer<T>(Arc<Board<T>>);

/// A reading side.
#[derive(Clone, Debug)]
pub(crate) struct Reader<T> {
    board: Arc<Board<T>>,
    /// The number of changes that this reader has seen.
    seen: u64,
}

/// The error of [`Reader::changed`] after the last writer was dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed;

impl<T> Writer<T> {
    pub(crate) fn new(value: T) -> Self {
        let (changes, writers) = (AtomicU64::new(0), AtomicUsize::new(1));
        Self(Arc::new(Board { value: RwLock::new(value), changes, writers, changed: Notify::new() }))
    }

    /// Returns a reader whose [`changed`](Reader::changed) waits for the next change.
    pub(crate) fn reader(&self) -> Reader<T> {
        Reader { board: Arc::clone(&self.0), seen: self.0.changes.load(Ordering::Acquire) }
    }

    /// Changes the value, and wakes everyone who waits for a change.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        self.adjust(|value| {
            change(value);
            self.0.changes.fetch_add(1, Ordering::Release);
        });
        self.0.changed.notify_waiters();
    }

    /// Changes the value, and wakes nobody.
    pub(crate) fn adjust(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.0.value.write().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read()
    }
}

impl<T> Clone for Writer<T> {
    fn clone(&self) -> Self {
        self.0.writers.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Writer<T> {
    fn drop(&mut self) {
        if self.0.writers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

impl<T> Reader<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.board.read()
    }

    /// Reads the value, and marks all changes so far as seen: [`changed`](Self::changed) then waits for the next one.
    pub(crate) fn read_and_mark(&mut self) -> RwLockReadGuard<'_, T> {
        let value = self.board.read();
        // The read lock excludes changes, so this count belongs to the value that was read.
        self.seen = self.board.changes.load(Ordering::Acquire);
        value
    }

    /// Waits for a change that this reader has not seen. Fails if there can be no more. Cancellation safe.
    pub(crate) async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            // Created before the checks, because a waiter is notified only of what happens after its creation.
            let waiter = self.board.changed.notified();
            // `is_closed` is read before `changes`, so that the last change is returned before the error.
            let is_closed = self.board.writers.load(Ordering::Acquire) == 0;
            let changes = self.board.changes.load(Ordering::Acquire);
            if changes != self.seen {
                self.seen = changes;
                return Ok(());
            }
            if is_closed {
                return Err(Closed);
            }
            waiter.await;
        }
    }
}

impl<T> Board<T> {
    fn read(&self) -> RwLockReadGuard<'_, T> {
        // A poisoned lock can be ignored: a change that panics leaves a valid value, the old one or the new one.
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_reader_sees_every_change_once_and_then_the_end() {
        let writer = Writer::new(0);
        let mut reader = writer.reader();
        assert!(reader.changed().now_or_never().is_none());
        writer.adjust(|value| *value = 1);
        assert!(reader.changed().now_or_never().is_none());
        assert_eq!(*reader.read(), 1);
        writer.change(|value| *value = 2);
        let mut late = writer.reader();
        assert!(reader.changed().now_or_never().is_some_and(|changed| changed.is_ok()));
        assert!(reader.changed().now_or_never().is_none());
        assert!(late.changed().now_or_never().is_none());
        writer.change(|value| *value = 3);
        assert_eq!(*reader.read_and_mark(), 3);
        assert!(reader.changed().now_or_never().is_none());
        drop(writer.clone());
        assert!(reader.changed().now_or_never().is_none());
        drop(writer);
        assert!(reader.changed().now_or_never().is_some_and(|changed| changed.is_err()));
        assert!(late.changed().now_or_never().is_some_and(|changed| changed.is_ok()), "a change comes before the end");
        assert!(late.changed().now_or_never().is_some_and(|changed| changed.is_err()));
    }

    #[tokio::test]
    async fn a_change_wakes_everyone_who_waits() {
        let writer = Writer::new(());
        let readers: Vec<_> = (0..3).map(|_| writer.reader()).collect();
        let waiting: Vec<_> =
            readers.into_iter().map(|mut reader| tokio::spawn(async move { reader.changed().await })).collect();
        tokio::task::yield_now().await;
        writer.change(|()| {});
        for waiting in waiting {
            assert!(waiting.await.is_ok_and(|changed| changed.is_ok()));
        }
    }
}
