//! The judge of a run: it knows true time, and hears of every event.

use std::collections::VecDeque;
use std::ops::AddAssign;
use std::time::Duration;

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

/// The statistics of a run.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Stats {
    pub requests: u64,
    pub writes: u64,
    pub sessions: u64,
    pub terms: u64,
    pub ended_by_others: u64,
    pub releases: u64,
    pub hand_overs: u64,
    pub crashes: u64,
    pub freezes: u64,
    pub stops: u64,
    pub deletions: u64,
    pub interventions: u64,
    /// The longest time for which a lock had no leader between two terms.
    pub longest_gap: Duration,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.writes += other.writes;
        self.sessions += other.sessions;
        self.terms += other.terms;
        self.ended_by_others += other.ended_by_others;
        self.releases += other.releases;
        self.hand_overs += other.hand_overs;
        self.crashes += other.crashes;
        self.freezes += other.freezes;
        self.stops += other.stops;
        self.deletions += other.deletions;
        self.interventions += other.interventions;
        self.longest_gap = self.longest_gap.max(other.longest_gap);
    }
}

/// The state of the judge.
#[derive(Debug)]
pub(super) struct Oracle {
    pub(super) stats: Stats,
    pub(super) violation: Option<(Property, String)>,
    /// For each lock: the token that the next first write has to reach.
    pub(super) next_token: Vec<u64>,
    /// For each lock: the largest token of a term whose lock an operator took away. Such a term may overlap with the next.
    pub(super) deposed: Vec<Option<u64>>,
    /// For each lock: the end of its last term, if no term has begun since.
    pub(super) unled_since: Vec<Option<Duration>>,
    story: VecDeque<String>,
    lines: usize,
}

impl Oracle {
    pub(super) fn new(locks: usize, lines: usize) -> Self {
        let (stats, story) = (Stats::default(), VecDeque::new());
        let (next_token, deposed, unled_since) = (vec![0; locks], vec![None; locks], vec![None; locks]);
        Self { stats, violation: None, next_token, deposed, unled_since, story, lines }
    }

    /// Returns `true` if no operator has taken the lock away from this term.
    pub(super) fn counts(&self, lock: u32, token: u64) -> bool {
        self.deposed[lock as usize] < Some(token)
    }

    /// Records that a term of a lock begins.
    pub(super) fn is_led(&mut self, now: Duration, lock: usize) {
        let since = self.unled_since[lock].take().unwrap_or(now);
        self.stats.longest_gap = self.stats.longest_gap.max(now.saturating_sub(since));
    }

    pub(super) fn violated(&mut self, property: Property, what: String) {
        self.violation.get_or_insert((property, what));
    }

    pub(super) fn demand(&mut self, holds: bool, property: Property, what: impl FnOnce() -> String) {
        if !holds {
            self.violated(property, what());
        }
    }

    pub(super) fn log(&mut self, now: Duration, what: impl FnOnce() -> String) {
        if self.lines > 0 {
            if self.story.len() == self.lines {
                self.story.pop_front();
            }
            self.story.push_back(format!("{:>10.3} s  {}", now.as_secs_f64(), what()));
        }
    }

    pub(super) fn story(&self) -> String {
        self.story.iter().fold(String::new(), |story, line| story + line + "\n")
    }
}
