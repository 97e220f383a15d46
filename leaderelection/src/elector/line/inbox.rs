//! The messages of peers that an elector has not read yet.

use std::collections::VecDeque;

use tokio::sync::Notify;

use crate::util::sync::Mutex;

/// A queue that keeps the newest messages.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    words: Mutex<VecDeque<T>>,
    /// The number of unread messages. Older ones are dropped, because a newer message of a term says more.
    capacity: usize,
    filled: Notify,
}

impl<T> Inbox<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { words: Mutex::default(), capacity, filled: Notify::new() }
    }

    pub(crate) fn put(&self, message: T) {
        let mut words = self.words.lock();
        if words.len() == self.capacity {
            words.pop_front();
        }
        words.push_back(message);
        drop(words);
        self.filled.notify_one();
    }

    /// Takes all messages that are there.
    #[cfg(feature = "sessions")]
    pub(crate) fn take(&self) -> VecDeque<T> {
        std::mem::take(&mut *self.words.lock())
    }

    /// Takes the next message, if there is one.
    pub(crate) fn pop(&self) -> Option<T> {
        self.words.lock().pop_front()
    }

    /// Waits for the next message. Cancellation safe.
    #[cfg(feature = "sessions")]
    pub(crate) async fn next(&self) -> T {
        loop {
            if let Some(message) = self.pop() {
                return message;
            }
            // A ring that came before this wait is kept, so a message between the poll and the wait is not missed.
            self.filled.notified().await;
        }
    }
}
