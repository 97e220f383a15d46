//! Rule 11: `on_new_leader` in order, one at a time, without delaying renewals.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::callbacks::OnNewLeader;

/// Calls the callback on a thread that may block. When the election's future completes, all waiting calls still
/// happen. When that future is dropped, calls that have not begun never happen.
#[derive(Clone)]
pub(super) struct NewLeaderCalls {
    callback: Option<Arc<OnNewLeader>>,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    leaders: VecDeque<String>,
    draining: bool,
}

impl NewLeaderCalls {
    pub(super) fn new(callback: Option<Arc<OnNewLeader>>) -> Self {
        Self { callback, queue: Arc::default() }
    }

    pub(super) fn call(&self, leader: &str) {
        let Some(callback) = self.callback.clone() else { return };
        let mut queue = lock(&self.queue);
        queue.leaders.push_back(leader.to_owned());
        if !std::mem::replace(&mut queue.draining, true) {
            let shared = Arc::clone(&self.queue);
            drop(tokio::task::spawn_blocking(move || drain(&*callback, &shared)));
        }
    }

    pub(super) fn forget_waiting(&self) {
        lock(&self.queue).leaders.clear();
    }
}

fn drain(callback: &OnNewLeader, queue: &Mutex<Queue>) {
    loop {
        let leader = {
            let mut queue = lock(queue);
            let Some(leader) = queue.leaders.pop_front() else {
                queue.draining = false;
                return;
            };
            leader
        };
        if catch_unwind(AssertUnwindSafe(|| callback(&leader))).is_err() {
            tracing::error!(leader, "on_new_leader panicked; the election goes on");
        }
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    // No code that can panic runs while this mutex is held.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for NewLeaderCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewLeaderCalls").field("queue", &self.queue).finish_non_exhaustive()
    }
}
