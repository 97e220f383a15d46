//! Sleeps by a clock that counts suspend, with timers that do not.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leaderelection::clock::{Clock, LocalInstant, SLICE, SystemClock, sleep_through_suspends};
use tokio::time::{Instant, sleep, timeout};

/// A clock that goes on during suspend, while tokio's simulated time, and so every timer, stands still.
#[derive(Clone)]
struct MachineClock {
    start: Instant,
    suspended: Arc<AtomicU64>,
}

impl MachineClock {
    fn new() -> Self {
        Self { start: Instant::now(), suspended: Arc::default() }
    }

    fn now(&self) -> LocalInstant {
        let suspended = Duration::from_nanos(self.suspended.load(Ordering::Relaxed));
        LocalInstant::default() + self.start.elapsed() + suspended
    }

    fn suspend(&self, lasts: Duration) {
        self.suspended.fetch_add(u64::try_from(lasts.as_nanos()).unwrap(), Ordering::Relaxed);
    }

    /// Sleeps with a watch for suspends, or without one.
    fn sleep(&self, lasts: Duration, watched: bool) -> impl Future<Output = ()> + Send + use<> {
        let (clock, deadline) = (self.clone(), self.now() + lasts);
        async move {
            let resumed = || watched.then(|| clock.resumed());
            sleep_through_suspends(|| clock.now(), sleep, resumed, deadline).await;
        }
    }

    /// Completes at the end of the first slice that saw a suspend.
    fn resumed(&self) -> impl Future<Output = ()> + Send + use<> {
        let (clock, before) = (self.clone(), self.suspended.load(Ordering::Relaxed));
        async move {
            while clock.suspended.load(Ordering::Relaxed) == before {
                sleep(SLICE).await;
            }
        }
    }
}

/// The greatest delay of a timer, for every slice.
const GRAIN: Duration = Duration::from_millis(2);

#[tokio::test(start_paused = true)]
async fn a_sleep_across_a_suspend_ends_within_a_slice_of_its_end() {
    for (asleep_for, suspended_for) in [(0, 3_600_000), (400, 3_600_000), (8_700, 3_600_000), (400, 9_500)] {
        for watched in [true, false] {
            let (asleep_for, suspended_for) = (Duration::from_millis(asleep_for), Duration::from_millis(suspended_for));
            let clock = MachineClock::new();
            let woken = tokio::spawn(clock.sleep(Duration::from_secs(10), watched));
            sleep(asleep_for).await;
            assert!(!woken.is_finished());
            clock.suspend(suspended_for);
            let resumed = Instant::now();
            woken.await.unwrap();
            let late = resumed.elapsed();
            assert!(late <= SLICE + GRAIN, "suspended after {asleep_for:?}: woke {late:?} after it went on");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspend_that_ends_before_the_sleep_shortens_it() {
    for watched in [true, false] {
        let clock = MachineClock::new();
        let (start, woken) = (Instant::now(), tokio::spawn(clock.sleep(Duration::from_secs(10), watched)));
        sleep(Duration::from_millis(2_500)).await;
        clock.suspend(Duration::from_secs(4));
        woken.await.unwrap();
        let awake = start.elapsed();
        let expected = Duration::from_secs(6);
        assert!(awake >= expected && awake <= expected + GRAIN * 7, "{awake:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspend_between_the_clock_and_the_watch_is_counted() {
    let (clock, start) = (MachineClock::new(), Instant::now());
    let resumed = || {
        clock.suspend(Duration::from_secs(7));
        Some(clock.resumed())
    };
    sleep_through_suspends(|| clock.now(), sleep, resumed, clock.now() + Duration::from_secs(10)).await;
    let awake = start.elapsed();
    assert!(awake <= Duration::from_secs(3) + GRAIN, "{awake:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_never_ends_early_and_one_that_is_over_ends_at_once() {
    for lasts in [0, 1, 999, 1_000, 1_001, 12_345].map(Duration::from_millis) {
        for watched in [true, false] {
            let (clock, start) = (MachineClock::new(), Instant::now());
            clock.sleep(lasts, watched).await;
            let took = start.elapsed();
            assert!(took >= lasts && took <= lasts + GRAIN * 14, "{lasts:?}: {took:?}");
        }
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn the_machines_clock_wakes_no_sleeper_while_nothing_happens() {
    let mut sleeping = SystemClock.sleep_until(SystemClock.now() + Duration::from_secs(3_600));
    let mut polls = 0;
    let counted = poll_fn(|context| {
        polls += 1;
        sleeping.as_mut().poll(context)
    });
    assert!(timeout(SLICE * 9 / 2, counted).await.is_err(), "tokio's time passed, the machine's did not");
    // At first, and when the timeout ends.
    assert_eq!(polls, 2);
}
