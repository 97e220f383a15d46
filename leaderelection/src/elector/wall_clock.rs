//! A warning about a wall clock that jumps. No decision depends on that clock, but people read its times in the
//! record.

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::LocalInstant;

/// Longer than any difference caused by clock slewing, or by a pause between reading the two clocks.
const TOLERATED: TimeDelta = TimeDelta::minutes(1);

#[derive(Debug, Default)]
pub(super) struct WallClock {
    last_check: Option<(LocalInstant, DateTime<Utc>)>,
}

impl WallClock {
    /// Warns if the wall clock and the monotonic clock disagree about the time since they were last read.
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
