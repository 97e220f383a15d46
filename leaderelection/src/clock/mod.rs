//! Clocks: monotonic time for every decision, and wall time for the record.

#[cfg_attr(not(feature = "test-util"), allow(unreachable_pub, reason = "public for tests only"))]
mod sleep;
mod suspend;
mod system;
#[cfg(feature = "test-util")]
mod tokio_clock;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

pub use leaderelection_protocol::LocalInstant;
pub(crate) use sleep::pause;
#[cfg(not(feature = "test-util"))]
use sleep::sleep_through_suspends;
#[cfg(feature = "test-util")]
pub use sleep::{SLICE, sleep_through_suspends};
use system::system_now;
#[cfg(feature = "test-util")]
pub use tokio_clock::TokioClock;

/// The source of the elector's time. Only this module reads clocks and sets timers.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The monotonic time. It must continue while the machine is suspended.
    fn now(&self) -> LocalInstant;

    /// The wall time, which may be wrong and may jump. It is for people: no decision depends on it.
    fn wall_time(&self) -> DateTime<Utc>;

    /// Sleeps until `deadline`, and returns the time after the sleep, which is never before `deadline`. Cancellation
    /// safe.
    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant;
}

#[async_trait]
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> LocalInstant {
        (**self).now()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        (**self).wall_time()
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        (**self).sleep_until(deadline).await
    }
}

/// The machine's clock.
///
/// Its monotonic time is `CLOCK_BOOTTIME` on Linux and Android, `CLOCK_MONOTONIC` on other Unix systems, and the
/// standard library's clock elsewhere. It counts a suspend on Linux, Android and Apple systems. On Unix, it starts with
/// the machine, so moments of different processes can be compared. Elsewhere, it starts with the process.
///
/// tokio's timers do not count a suspend on every system. On Unix, a thread therefore compares the two clocks once a
/// second while anything sleeps by this clock. Elsewhere, no timer is set for longer than a second. When the machine
/// resumes after a suspend, [`Leadership::is_valid`](crate::Leadership::is_valid) is right at once, and
/// [`Leadership::lost`](crate::Leadership::lost) completes within a second.
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

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        sleep_through_suspends(system_now, tokio::time::sleep, suspend::resumed, deadline).await
    }
}
