//! Time: monotonic for every decision, wall time for the record.

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

/// The source of the elector's time. Nothing else in the crate reads a clock or sets a timer.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The monotonic time, which also counts while the machine is suspended.
    fn now(&self) -> LocalInstant;

    /// The wall time, which may be wrong and may jump. This time is for people: no decision depends on it.
    fn wall_time(&self) -> DateTime<Utc>;

    /// Sleeps until `deadline`, and returns the time then: `deadline` or later, never before. Cancellation safe.
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
/// Monotonic time counts suspend: `CLOCK_BOOTTIME` on Linux and Android, `CLOCK_MONOTONIC` on Apple systems
/// (which counts suspend there), the standard library's clock elsewhere. On Unix, the moments of all processes
/// since one boot can be compared, because the clock starts with the machine. Elsewhere, the clock starts with
/// the process.
///
/// tokio's timers do not count suspend on every system. On Unix, one thread for all electors of the process compares
/// the two clocks once a second, as long as anything sleeps by this clock. Elsewhere, no timer is set for longer than a
/// second. When the machine resumes after a suspend, [`Leadership::is_valid`](crate::Leadership::is_valid) is right at
/// once, and [`Leadership::lost`](crate::Leadership::lost) completes within a second.
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
