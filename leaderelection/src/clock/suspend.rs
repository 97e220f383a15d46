//! Wakes sleepers after a suspend of the machine: one thread for all sleepers of the process.
//!
//! If every sleeper read the clock by itself, a process with many electors would be woken many times a second for
//! nothing. A task could not replace the thread: a runtime may delay its tasks, and drops them at its end.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::sleep::SLICE;
use super::system::system_now;

use crate::util::sync::Mutex;

/// The shortest suspend that is reported. A timer may end 1 ms late anyway.
const GRAIN: Duration = Duration::from_millis(1);

/// Wakes all sleepers after a suspend.
#[derive(Debug)]
struct Watch {
    /// Returns by how much the machine's clock is ahead of the timers' clock. Each suspend adds its length to this.
    uncounted: fn() -> Duration,
    slice: Duration,
    resumed: Notify,
    state: Mutex<Sleepers>,
}

#[derive(Debug)]
struct Sleepers {
    count: usize,
    /// `true` while the thread runs.
    watched: bool,
}

/// Counts one sleeper until it is dropped.
struct Sleeper(&'static Watch);

/// Returns a future that completes within one slice after the next suspend; `None` if suspends cannot be noticed.
pub(super) fn resumed() -> Option<impl Future<Output = ()> + Send> {
    static WATCH: Watch = Watch::new(uncounted, SLICE);
    // Elsewhere, the machine's clock is also the clock of the timers, so there is nothing to compare it with.
    if cfg!(unix) { WATCH.resumed() } else { None }
}

/// Returns the time that timers have not counted so far, plus a constant.
fn uncounted() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    // The clock of the timers is read last, so an interruption between the two readings does not look like a suspend.
    let machine = Duration::from_nanos(system_now().as_nanos());
    machine.saturating_sub(start.elapsed())
}

impl Watch {
    const fn new(uncounted: fn() -> Duration, slice: Duration) -> Self {
        let state = Mutex::new(Sleepers { count: 0, watched: false });
        Self { uncounted, slice, resumed: Notify::const_new(), state }
    }

    fn resumed(&'static self) -> Option<impl Future<Output = ()> + Send> {
        let sleeper = self.enter()?;
        // From now on, this future is notified of every suspend, even before it is polled.
        let notified = self.resumed.notified();
        Some(async move {
            let _counted = sleeper;
            notified.await;
        })
    }

    /// Counts a sleeper, and starts the thread if there is none. Returns `None` if the thread cannot be started.
    fn enter(&'static self) -> Option<Sleeper> {
        let mut state = self.state.lock();
        if !state.watched {
            let uncounted = (self.uncounted)();
            let watch = move || self.watch(uncounted);
            thread::Builder::new().name("suspend-watch".to_owned()).spawn(watch).ok()?;
            state.watched = true;
        }
        state.count += 1;
        Some(Sleeper(self))
    }

    /// Wakes the sleepers after every suspend, until nobody sleeps. `uncounted` is the value when the thread starts.
    fn watch(&self, mut uncounted: Duration) {
        loop {
            thread::sleep(self.slice);
            let uncounted_now = (self.uncounted)();
            if uncounted_now > uncounted + GRAIN {
                uncounted = uncounted_now;
                self.resumed.notify_waiters();
            }
            let mut state = self.state.lock();
            // The lock covers both fields, so no sleeper is counted while the thread ends.
            if state.count == 0 {
                state.watched = false;
                return;
            }
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.state.lock().count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::timeout;

    use super::*;

    const SHORT: Duration = Duration::from_millis(1);
    const GENEROUS: Duration = Duration::from_secs(60);

    #[test]
    fn without_a_suspend_the_two_clocks_agree() {
        // The largest of many readings is one that was not interrupted.
        let before = (0..1_000).map(|_| uncounted()).max().unwrap();
        assert!((0..1_000).all(|_| uncounted() <= before + GRAIN));
    }

    #[tokio::test]
    async fn all_sleepers_are_woken_after_a_suspend() {
        static SUSPENDED: AtomicU64 = AtomicU64::new(7_000);
        static WATCH: Watch = Watch::new(|| Duration::from_millis(SUSPENDED.load(Ordering::SeqCst)), SHORT);
        for _ in 0..3 {
            let sleepers = [WATCH.resumed().unwrap(), WATCH.resumed().unwrap()];
            SUSPENDED.fetch_add(10, Ordering::SeqCst);
            for sleeper in sleepers {
                timeout(GENEROUS, sleeper).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn the_thread_ends_when_nobody_sleeps_and_starts_again() {
        static SUSPENDED: AtomicU64 = AtomicU64::new(0);
        static WATCH: Watch = Watch::new(|| Duration::from_millis(SUSPENDED.load(Ordering::SeqCst)), SHORT);
        for _ in 0..3 {
            let sleeper = WATCH.resumed().unwrap();
            assert!(WATCH.state.lock().watched);
            drop(sleeper);
            let is_over = async {
                while WATCH.state.lock().watched {
                    tokio::task::yield_now().await;
                }
            };
            timeout(GENEROUS, is_over).await.unwrap();
            let sleeper = WATCH.resumed().unwrap();
            SUSPENDED.fetch_add(10, Ordering::SeqCst);
            timeout(GENEROUS, sleeper).await.unwrap();
        }
    }
}
