//! The judge of a run: it knows true time, and hears of every event.

use std::time::Duration;

use crate::kit::{Longest, stats};

stats! {
    requests: u64 = "requests",
    writes: u64 = "writes",
    sessions: u64 = "sessions",
    ended_by_others: u64 = "sessions ended by others",
    deletions: u64 = "sessions deleted",
    terms: u64 = "terms",
    releases: u64 = "releases of single locks",
    hand_overs: u64 = "hand-overs",
    crashes: u64 = "crashes",
    freezes: u64 = "freezes",
    stops: u64 = "stops",
    interventions: u64 = "interventions",
    words: u64 = "words heard",
    longest_gap: Longest = "seconds without a leader at most",
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
