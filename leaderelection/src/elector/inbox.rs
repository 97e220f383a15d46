//! The words of peers that an elector has not taken up yet.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::election::Heard;

/// The number of words that wait. Older words are dropped, because a newer word of a term says more.
const CAPACITY: usize = 8;

/// A queue that holds the newest words.
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

    /// Waits for the next word. Cancellation safe.
    pub(super) async fn next(&self) -> Heard {
        loop {
            if let Some(heard) = self.words().pop_front() {
                return heard;
            }
            self.filled.notified().await;
        }
    }

    fn words(&self) -> MutexGuard<'_, VecDeque<Heard>> {
        // No code that could panic runs under the lock.
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
