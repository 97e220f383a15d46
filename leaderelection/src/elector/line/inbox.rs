//! The messages of peers that an elector has not read yet.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::election::Heard;

/// The number of unread messages. Older ones are dropped, because a newer message of a term says more.
const CAPACITY: usize = 8;

/// A queue that keeps the newest messages.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    words: Mutex<VecDeque<Heard>>,
    filled: Notify,
}

impl Inbox {
    pub(super) fn put(&self, heard: Heard) {
        let mut words = self.words();
        if words.len() == CAPACITY {
            words.pop_front();
        }
        words.push_back(heard);
        drop(words);
        self.filled.notify_one();
    }

    /// Waits for the next message. Cancellation safe.
    pub(super) async fn next(&self) -> Heard {
        loop {
            if let Some(heard) = self.words().pop_front() {
                return heard;
            }
            // A ring that came before this wait is kept, so a message between the look and the wait is not missed.
            self.filled.notified().await;
        }
    }

    fn words(&self) -> MutexGuard<'_, VecDeque<Heard>> {
        // No code that could panic runs under the lock.
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
