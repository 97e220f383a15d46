//! Warns about a wall clock that jumps. No decision depends on that clock, but people read its times in the record.

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::LocalInstant;

/// The largest jump that is not reported. Slewing, or a pause between the two readings, normally causes less.
const TOLERATED: TimeDelta = TimeDelta::minutes(1);

#[derive(Debug, Default)]
pub(super) struct WallClock {
    /// The monotonic time and the wall time of the last check.
    last_check: Option<(LocalInstant, DateTime<Utc>)>,
}

impl WallClock {
    /// Warns if the wall clock and the monotonic clock disagree about the time since the last check.
    pub(super) fn check(&mut self, now: LocalInstant, time: DateTime<Utc>) {
        let Some((then, before)) = self.last_check.replace((now, time)) else { return };
        let passed = TimeDelta::from_std(now.saturating_since(then)).unwrap_or(TimeDelta::MAX);
        let jump = (time - before).checked_sub(&passed).unwrap_or(TimeDelta::MIN);
        if jump.abs() > TOLERATED {
            tracing::warn!(
                seconds = jump.num_seconds(),
                "this machine's wall clock jumped; the election does not depend on it, but the times in the record do: \
                 check its time synchronization"
            );
        }
    }
}
