//! The messages of peers that an elector or a session has not read yet.

use std::collections::VecDeque;

use tokio::sync::Notify;

use crate::util::sync::Mutex;

/// A queue that keeps only the newest messages, because a newer message of a term says more than an older one.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    messages: Mutex<VecDeque<T>>,
    /// The most messages that are kept.
    capacity: usize,
    filled: Notify,
}

impl<T> Inbox<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { messages: Mutex::default(), capacity, filled: Notify::new() }
    }

    /// Adds a message. A full queue drops its oldest one.
    pub(crate) fn put(&self, message: T) {
        let mut messages = self.messages.lock();
        if messages.len() == self.capacity {
            messages.pop_front();
        }
        messages.push_back(message);
        drop(messages);
        self.filled.notify_one();
    }

    /// Takes all messages.
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
            // `filled` remembers a notification, so a message that comes between `pop` and this wait is not missed.
            self.filled.notified().await;
        }
    }
}
