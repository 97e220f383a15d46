//! All locks as the last poll showed them. Every browser is shown the same board.

use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::history::EndedTerm;

use crate::cause::Cause;
use crate::history::Term;
use crate::survey::Row;

/// The number of terms that are remembered of each lock.
pub(super) const REMEMBERED: usize = 16;

/// The locks, and the age of what is known.
#[derive(Clone, Debug)]
pub(super) struct Board {
    pub(super) locks: Vec<Lock>,
    /// The ended terms of locks under which commands or jobs ran, the newest first.
    pub(super) runs: Vec<Run>,
    /// The end of the last poll that succeeded, by the monotonic clock and by the wall clock.
    pub(super) looked_at: Option<(LocalInstant, DateTime<Utc>)>,
    /// The error of the last poll, if it failed.
    pub(super) problem: Option<Problem>,
    /// The time at which the timelines begin.
    pub(super) began: DateTime<Utc>,
}

/// The reason for which a poll failed.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) cause: Cause,
    pub(super) text: String,
}

/// One run of a command or a job: the ended term of a lock.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) lock: String,
    pub(super) term: EndedTerm,
}

/// A lock, and the terms that were seen.
#[derive(Clone, Debug)]
pub(super) struct Lock {
    pub(super) row: Row,
    /// Oldest first.
    pub(super) terms: Vec<Term>,
}

impl Default for Board {
    fn default() -> Self {
        Self { locks: Vec::new(), runs: Vec::new(), looked_at: None, problem: None, began: SystemClock.wall_time() }
    }
}

impl Board {
    /// The time since the last poll that succeeded.
    pub(super) fn age(&self) -> Option<Duration> {
        self.looked_at.map(|(at, _)| SystemClock.now().saturating_since(at))
    }
}
