//! The monotonic time of the machine.

#[cfg(unix)]
use std::time::Duration;

use leaderelection_protocol::LocalInstant;

#[cfg(unix)]
pub(super) fn system_now() -> LocalInstant {
    use rustix::time::{ClockId, clock_gettime};

    // On these two systems, `Monotonic` does not count a suspend.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;

    let time = clock_gettime(CLOCK);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    LocalInstant::default() + seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(unix))]
pub(super) fn system_now() -> LocalInstant {
    use std::sync::OnceLock;
    use std::time::Instant;

    static START: OnceLock<Instant> = OnceLock::new();
    LocalInstant::default() + START.get_or_init(Instant::now).elapsed()
}
