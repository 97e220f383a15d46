//! Time: monotonic for every decision, wall time for the record.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

/// A moment on a monotonic clock: nanoseconds since a start that is the clock's own.
///
/// A plain number, so that the protocol can be explored without a clock. Moments of different clocks
/// cannot be compared, nor can those of different machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalInstant(u64);

impl LocalInstant {
    /// The moment `nanos` nanoseconds after the clock's start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for LocalInstant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for LocalInstant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Where the elector gets its time from. Nothing else in the crate reads a clock or sets a timer.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The monotonic time, which goes on while the machine is suspended.
    fn now(&self) -> LocalInstant;

    /// The wall time, which may be wrong and may jump. For people: no decision reads it.
    fn wall_time(&self) -> DateTime<Utc>;

    /// Returns at or after `deadline`, never before. Cancellation safe.
    async fn sleep_until(&self, deadline: LocalInstant);
}

/// How late a sleep of [`SystemClock`] may end after a suspend.
///
/// Shorter slices would wake an idle process more often, longer ones would keep a leader that was
/// suspended past its window from being told: see [`sleep_in_slices`]. A second is half a retry period of the
/// defaults, so that a leader is woken once more between two renewals.
pub const SLICE: Duration = Duration::from_secs(1);

/// The machine's clock.
///
/// Monotonic time counts suspend: `CLOCK_BOOTTIME` on Linux and Android, `CLOCK_MONOTONIC` on Apple
/// systems (which counts it there), the standard library's clock elsewhere.
/// On Unix its start is the machine's: the moments of all processes of one boot can be compared. Elsewhere it
/// is the process's own.
///
/// Timers are tokio's and do not count suspend everywhere, so it [sleeps in slices](sleep_in_slices): when the
/// machine goes on after a suspend, [`Leadership::is_valid`](crate::Leadership::is_valid) is right at once, and
/// [`Leadership::lost`](crate::Leadership::lost) completes within one [`SLICE`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> LocalInstant {
        system_now()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        Utc::now()
    }

    async fn sleep_until(&self, deadline: LocalInstant) {
        sleep_in_slices(|| self.now(), tokio::time::sleep, deadline).await;
    }
}

#[cfg(unix)]
fn system_now() -> LocalInstant {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;

    let time = clock_gettime(CLOCK);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    LocalInstant::default() + seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(unix))]
fn system_now() -> LocalInstant {
    use std::sync::OnceLock;
    use std::time::Instant;

    static START: OnceLock<Instant> = OnceLock::new();
    LocalInstant::default() + START.get_or_init(Instant::now).elapsed()
}

/// tokio's clock, for tests that pause and advance it. Does not count suspend: not for production.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: tokio::time::Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for TokioClock {
    fn now(&self) -> LocalInstant {
        LocalInstant::default() + self.start.elapsed()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + self.start.elapsed()
    }

    async fn sleep_until(&self, deadline: LocalInstant) {
        // Clock and timers stand still together.
        loop {
            let left = deadline.saturating_since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

/// Sleeps until `now` shows `deadline`, however the time until then passes: for a [`Clock`] that counts
/// suspend, by a `timer` that does not.
///
/// Such a timer stands still while the machine is suspended, and ends late by what was left of it. So no
/// timer is set for longer than one [`SLICE`], and the clock is read after each.
pub async fn sleep_in_slices<T>(now: impl Fn() -> LocalInstant, timer: impl Fn(Duration) -> T, deadline: LocalInstant)
where
    T: Future<Output = ()>,
{
    loop {
        let left = deadline.saturating_since(now());
        if left.is_zero() {
            return;
        }
        timer(left.min(SLICE)).await;
    }
}
