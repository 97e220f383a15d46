//! Calls `on_new_leader` in order, one call at a time, without delaying renewals (rule 11).

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

/// The most calls that wait for a slow one. A longer queue would only report leaders of long ago.
const MAX_WAITING: usize = 16;

/// The most threads that the calls of many locks share.
const MAX_THREADS: usize = 8;

/// Calls the callback on a separate thread, which the callback may block. When the election's future completes, all
/// waiting calls are still made. When that future is dropped, calls that have not begun are never made.
///
/// The thread does not belong to the runtime, because a runtime that is dropped waits for its own threads. A call that never returns would
/// then keep the program from exiting.
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
    /// `true` while a thread makes the calls of this queue, or is about to.
    draining: bool,
    /// `true` if a call was skipped since the queue was last empty.
    has_skipped: bool,
}

impl Queue {
    /// Adds a call, and skips the oldest one if the queue is full. Returns `true` for the first skipped call since the queue was empty.
    fn push(&mut self, leader: &str) -> bool {
        let is_full = self.leaders.len() == MAX_WAITING;
        if is_full {
            self.leaders.pop_front();
        }
        self.leaders.push_back(leader.to_owned());
        is_full && !std::mem::replace(&mut self.has_skipped, true)
    }

    fn pop(&mut self) -> Option<String> {
        let next = self.leaders.pop_front();
        if next.is_none() {
            // Resets `draining` while the queue is still locked, so that a leader that is pushed later starts a new thread.
            *self = Self::default();
        }
        next
    }
}

impl NewLeaderCalls {
    /// Creates the calls for one lock. Many locks can share a pool.
    pub(crate) fn new(callback: Option<Arc<OnNewLeader>>, pool: &Arc<CallbackPool>) -> Self {
        let pool = Arc::clone(pool);
        Self(callback.map(|callback| Arc::new(Calls { callback, queue: Mutex::default(), pool })))
    }

    pub(crate) fn call(&self, leader: &str) {
        let Some(calls) = &self.0 else { return };
        let mut queue = calls.queue.lock();
        let is_first_skip = queue.push(leader);
        let was_draining = std::mem::replace(&mut queue.draining, true);
        drop(queue);
        if is_first_skip {
            log::skipped_new_leaders();
        }
        // Only one thread drains a queue, which keeps the calls in order and one at a time (rule 11).
        if was_draining {
            return;
        }
        if let Err(error) = calls.pool.submit(Arc::clone(calls)) {
            // The leader stays in the queue, and the next change of leader tries again to start a thread.
            calls.queue.lock().draining = false;
            log::no_thread_for_new_leader(&error);
        }
    }

    /// Drops all calls that have not begun.
    pub(crate) fn forget_waiting(&self) {
        if let Some(calls) = &self.0 {
            calls.queue.lock().leaders.clear();
        }
    }
}

impl Calls {
    /// Makes calls until the queue is empty.
    fn run(&self) {
        loop {
            let Some(leader) = self.queue.lock().pop() else { return };
            // An uncaught panic would end the thread without resetting `draining`, so that no thread would ever drain the queue again.
            if catch_unwind(AssertUnwindSafe(|| (self.callback)(&leader))).is_err() {
                log::new_leader_panicked(&leader);
            }
        }
    }
}

/// A limited number of threads, which make the calls of one lock or of many locks.
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
        if state.threads == MAX_THREADS {
            // The leaders of ten thousand locks may change at once, which must not start as many threads.
            state.waiting.push_back(calls);
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let (pool, runtime) = (Arc::clone(self), Handle::try_current().ok());
        let drain = move || {
            // Enter the runtime, because a callback may spawn tasks.
            let _entered = runtime.as_ref().map(Handle::enter);
            let mut next = Some(calls);
            while let Some(calls) = next {
                calls.run();
                next = pool.next();
            }
        };
        let spawned = thread::Builder::new().name("on_new_leader".to_owned()).spawn(drain).map(drop);
        if spawned.is_err() {
            self.0.lock().threads -= 1;
        }
        spawned
    }

    fn next(&self) -> Option<Arc<Calls>> {
        let mut state = self.0.lock();
        let next = state.waiting.pop_front();
        // Counted while the pool is still locked, so that no calls wait for a thread that is about to end.
        state.threads -= usize::from(next.is_none());
        next
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}
