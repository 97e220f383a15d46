//! All locks as the last poll showed them. Every browser is shown the same board.

use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::history::EndedTerm;

use crate::cause::Cause;
use crate::exit::Failure;
use crate::history::Term;
use crate::lock::status::LockStatus;
use crate::pages::{capital, line};
use crate::survey::Row;
use crate::survey::parts::AWAY;

/// The number of terms that are remembered of each lock.
pub(super) const REMEMBERED: usize = 16;

/// The locks, and the age of what is known.
#[derive(Clone, Debug)]
pub(super) struct Board {
    pub(super) locks: Vec<Lock>,
    /// The ended terms of locks under which commands or jobs ran, the newest first.
    pub(super) runs: Vec<Run>,
    /// The end of the last poll that succeeded, by the monotonic clock and by the wall clock.
    pub(super) read_at: Option<(LocalInstant, DateTime<Utc>)>,
    /// The error of the last poll, if it failed.
    pub(super) problem: Option<Problem>,
    /// The error of a part that the last poll could not list, although most could.
    pub(super) away: Option<Problem>,
    /// The time at which the timelines begin.
    pub(super) began: DateTime<Utc>,
}

/// The reason for which a poll failed, and the next step.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) cause: Cause,
    text: String,
    step: Option<&'static str>,
}

impl Problem {
    pub(super) fn of(failure: &Failure) -> Self {
        let cause = failure.cause.unwrap_or(Cause::Silent);
        Self { cause, text: failure.to_string(), step: LockStatus::Unknown(cause).next_step() }
    }

    pub(super) fn of_part(failure: &Failure) -> Self {
        Self { step: Some(AWAY), ..Self::of(failure) }
    }

    /// All of it in sentences.
    pub(super) fn told(&self) -> String {
        let step = self.step.map(|step| format!(" {}.", capital(step))).unwrap_or_default();
        line(format!("{}: {}.{step}", capital(&self.cause.to_string()), self.text))
    }
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
        let (locks, runs, began) = (Vec::new(), Vec::new(), SystemClock.wall_time());
        Self { locks, runs, read_at: None, problem: None, away: None, began }
    }
}

impl Board {
    /// The time since the last poll that succeeded.
    pub(super) fn age(&self) -> Option<Duration> {
        self.read_at.map(|(at, _)| SystemClock.now().saturating_since(at))
    }
}
