//! Moments on a monotonic clock.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment on a monotonic clock: the number of nanoseconds since the clock's start.
///
/// The moment is a plain number, so that the protocol can be explored without a clock. Moments of different clocks cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
// The nanoseconds plus one. As it is never zero, an `Option` of a moment takes no additional memory. An elector keeps several of them.
pub struct LocalInstant(NonZeroU64);

impl LocalInstant {
    /// The moment `nanos` nanoseconds after the clock's start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// The number of nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns the time since `earlier`, or zero if `earlier` is not earlier.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.as_nanos().saturating_sub(earlier.as_nanos()))
    }
}

impl Default for LocalInstant {
    fn default() -> Self {
        Self::from_nanos(0)
    }
}

impl fmt::Debug for LocalInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalInstant").field(&self.as_nanos()).finish()
    }
}

impl Add<Duration> for LocalInstant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for LocalInstant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}
