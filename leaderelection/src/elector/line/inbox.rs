//! The messages of peers that an elector has not read yet.

use std::collections::VecDeque;

use tokio::sync::Notify;

use crate::util::sync::Mutex;

/// A queue that keeps the newest messages.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    messages: Mutex<VecDeque<T>>,
    /// The number of unread messages. Older ones are dropped, because a newer message of a term says more.
    capacity: usize,
    filled: Notify,
}

impl<T> Inbox<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { messages: Mutex::default(), capacity, filled: Notify::new() }
    }

    pub(crate) fn put(&self, message: T) {
        let mut messages = self.messages.lock();
        if messages.len() == self.capacity {
            messages.pop_front();
        }
        messages.push_back(message);
        drop(messages);
        self.filled.notify_one();
    }

    /// Takes all messages that are there.
    #[cfg(feature = "sessions")]
    pub(crate) fn take(&self) -> VecDeque<T> {
        std::mem::take(&mut *self.messages.lock())
    }

    /// Takes the next message, if there is one.
    pub(crate) fn pop(&self) -> Option<T> {
        self.messages.lock().pop_front()
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
