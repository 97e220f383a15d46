//! No further calls on a disk that hangs.
//!
//! A call on a hung disk occupies a thread until the disk answers, even if its caller has given up. A caller that tries
//! again would fill all threads of the runtime. So a call waits as long as an earlier one is overdue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use tokio::sync::Notify;

/// The time after which a call counts as overdue. Calls take milliseconds, or seconds on a disk under heavy load.
const OVERDUE: Duration = Duration::from_secs(1);

/// The calls of a store that are running.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    overdue: Duration,
    calls: Arc<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    /// By number, in their order: the moment at which the call began.
    running: Mutex<BTreeMap<u64, LocalInstant>>,
    ended: Notify,
}

/// A call that runs until this value is dropped.
#[derive(Debug)]
pub(super) struct Running {
    calls: Arc<Calls>,
    number: u64,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self::overdue_after(OVERDUE)
    }

    fn overdue_after(overdue: Duration) -> Self {
        Self { overdue, calls: Arc::default() }
    }

    /// Begins a call as soon as none is overdue.
    pub(super) async fn enter(&self) -> Running {
        loop {
            let mut ended = std::pin::pin!(self.calls.ended.notified());
            // From here on, no end is missed.
            ended.as_mut().enable();
            if let Some(running) = self.try_enter() {
                return running;
            }
            ended.await;
        }
    }

    fn try_enter(&self) -> Option<Running> {
        let mut running = self.calls.running();
        let now = SystemClock.now();
        if running.values().any(|began| now.saturating_since(*began) >= self.overdue) {
            return None;
        }
        let number = running.last_key_value().map_or(0, |(last, _)| last + 1);
        running.insert(number, now);
        Some(Running { calls: Arc::clone(&self.calls), number })
    }
}

impl Calls {
    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, LocalInstant>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.calls.running().remove(&self.number);
        self.calls.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn nobody_waits_for_calls_that_are_in_time() {
        let gate = Gate::overdue_after(Duration::from_secs(3600));
        let mut running = Vec::new();
        for _ in 0..100 {
            running.push(timeout(Duration::from_secs(60), gate.enter()).await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_call_waits_until_no_other_is_overdue() {
        let gate = Gate::overdue_after(Duration::ZERO);
        let hung = gate.enter().await;
        for _ in 0..3 {
            timeout(SHORT, gate.enter()).await.unwrap_err();
        }
        let waiting = (0..10).map(|_| {
            let gate = gate.clone();
            tokio::spawn(async move { drop(gate.enter().await) })
        });
        let waiting: Vec<_> = waiting.collect();
        tokio::task::yield_now().await;
        drop(hung);
        for call in waiting {
            timeout(Duration::from_secs(60), call).await.unwrap().unwrap();
        }
    }
}
