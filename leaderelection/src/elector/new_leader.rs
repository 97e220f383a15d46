//! Rule 11: `on_new_leader` in order, one at a time, without delaying renewals.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use tokio::runtime::Handle;

use super::log;
use crate::config::callbacks::OnNewLeader;
use crate::util::sync::Mutex;

/// The number of calls that wait for a slow one. A longer queue would only report what is long past.
const MOST_WAITING: usize = 16;

/// The number of threads that the calls of many locks share.
const MOST_THREADS: usize = 8;

/// Calls the callback on a thread that may block. When the election's future completes, all waiting calls still
/// happen. When that future is dropped, calls that have not begun never happen.
///
/// The thread does not belong to the runtime, because a runtime that is dropped waits for its own threads: a hanging call would keep the
/// program from exiting.
#[derive(Clone, Debug)]
pub(crate) struct NewLeaderCalls(Option<Arc<Calls>>);

struct Calls {
    callback: Arc<OnNewLeader>,
    queue: Mutex<Queue>,
    pool: Arc<CallbackPool>,
}

#[derive(Debug, Default)]
struct Queue {
    leaders: VecDeque<String>,
    draining: bool,
    /// `true` if calls were skipped since the thread was last idle.
    left_out: bool,
}

impl Queue {
    /// Returns `true` if a call was skipped for the first time.
    fn push(&mut self, leader: &str) -> bool {
        let full = self.leaders.len() == MOST_WAITING;
        if full {
            self.leaders.pop_front();
        }
        self.leaders.push_back(leader.to_owned());
        full && !std::mem::replace(&mut self.left_out, true)
    }

    fn pop(&mut self) -> Option<String> {
        let next = self.leaders.pop_front();
        if next.is_none() {
            // The flag is cleared under the same lock that showed the empty queue. If a leader is pushed later, a new thread starts.
            *self = Self::default();
        }
        next
    }
}

impl NewLeaderCalls {
    /// Creates the calls of one lock. Those of many locks share a pool.
    pub(crate) fn new(callback: Option<Arc<OnNewLeader>>, pool: &Arc<CallbackPool>) -> Self {
        let pool = Arc::clone(pool);
        Self(callback.map(|callback| Arc::new(Calls { callback, queue: Mutex::default(), pool })))
    }

    pub(crate) fn call(&self, leader: &str) {
        let Some(calls) = &self.0 else { return };
        let mut queue = calls.queue.lock();
        let begins_to_leave_out = queue.push(leader);
        let drained = std::mem::replace(&mut queue.draining, true);
        drop(queue);
        if begins_to_leave_out {
            log::left_out_new_leaders();
        }
        // One thread per queue keeps the calls in order and one at a time (rule 11).
        if drained {
            return;
        }
        if let Err(error) = calls.pool.submit(Arc::clone(calls)) {
            // The leader stays in the queue, and the next change of leader tries again.
            calls.queue.lock().draining = false;
            log::no_thread_for_new_leader(&error);
        }
    }

    pub(crate) fn forget_waiting(&self) {
        if let Some(calls) = &self.0 {
            calls.queue.lock().leaders.clear();
        }
    }
}

impl Calls {
    /// Calls until nothing waits.
    fn run(&self) {
        loop {
            let Some(leader) = self.queue.lock().pop() else { return };
            // A panic would end the thread although the flag says that it drains the queue.
            if catch_unwind(AssertUnwindSafe(|| (self.callback)(&leader))).is_err() {
                log::new_leader_panicked(&leader);
            }
        }
    }
}

/// A few threads for the calls of one lock, or of many locks, whose leaders may all change at once.
#[derive(Debug, Default)]
pub(crate) struct CallbackPool(Mutex<PoolState>);

#[derive(Debug, Default)]
struct PoolState {
    threads: usize,
    waiting: VecDeque<Arc<Calls>>,
}

impl CallbackPool {
    fn submit(self: &Arc<Self>, calls: Arc<Calls>) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.threads == MOST_THREADS {
            // A process may have ten thousand locks whose leaders change at once, which must not start as many threads.
            state.waiting.push_back(calls);
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let (pool, runtime) = (Arc::clone(self), Handle::try_current().ok());
        let drain = move || {
            // A callback may spawn tasks.
            let _entered = runtime.as_ref().map(Handle::enter);
            let mut next = Some(calls);
            while let Some(calls) = next {
                calls.run();
                next = pool.next();
            }
        };
        let begun = thread::Builder::new().name("on_new_leader".to_owned()).spawn(drain).map(drop);
        if begun.is_err() {
            self.0.lock().threads -= 1;
        }
        begun
    }

    fn next(&self) -> Option<Arc<Calls>> {
        let mut state = self.0.lock();
        let next = state.waiting.pop_front();
        // Counted under the lock that showed the empty queue, so that no calls wait for a thread that is ending.
        state.threads -= usize::from(next.is_none());
        next
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}
