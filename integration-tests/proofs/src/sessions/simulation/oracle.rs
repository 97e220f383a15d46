//! The judge of a run: it knows true time, and hears of every event.

use std::time::Duration;

use super::stats::Stats;
use crate::kit::Longest;

/// A promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// At most one process leads a lock.
    Exclusion,
    /// Every term of a lock has a larger token than all terms whose first write landed before.
    Tokens,
    /// A term that has ended is never valid again.
    NoRevival,
    /// No write replaces a lock or a session that is valid, of another process.
    NoErasure,
    /// A lock or a session is released after the work that needs it has ended.
    ReleaseAfterWork,
    /// A process has one work of a lock at a time: no term begins beside work of an earlier term, given up or not.
    OneWork,
    /// Work does not run after its lease, when the process has looked at the clock.
    WorkWithinLease,
    /// After the end of all faults, every lock has a leader in time.
    LeaderInTime,
    /// With balance, a member that joins has its share in time: the locks of which it is the first in order.
    ShareInTime,
    /// With balance, a member that joins moves only locks of which another member is the first in order, and a member that
    /// leaves moves only its own locks.
    MovesNoMore,
    /// A process that was asked to stop ends in time.
    EndsWhenStopped,
}

/// The state of the judge.
#[derive(Debug)]
pub(super) struct Oracle {
    pub(super) stats: Stats,
    /// For each lock: the token that the next first write has to reach.
    pub(super) next_token: Vec<u64>,
    /// For each lock: the largest token of a term whose lock an operator took away. Such a term may overlap with the next.
    pub(super) deposed: Vec<Option<u64>>,
    /// For each lock: the end of its last term, if no term has begun since.
    pub(super) unled_since: Vec<Option<Duration>>,
}

impl Oracle {
    pub(super) fn new(locks: usize) -> Self {
        let (next_token, deposed, unled_since) = (vec![0; locks], vec![None; locks], vec![None; locks]);
        Self { stats: Stats::default(), next_token, deposed, unled_since }
    }

    /// Returns `true` if no operator has taken the lock away from this term.
    pub(super) fn counts(&self, lock: u32, token: u64) -> bool {
        self.deposed[lock as usize] < Some(token)
    }

    /// Records that a term of a lock begins.
    pub(super) fn is_led(&mut self, now: Duration, lock: usize) {
        let since = self.unled_since[lock].take().unwrap_or(now);
        self.stats.longest_gap += Longest(now.saturating_sub(since));
    }
}
