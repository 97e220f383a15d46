//! One lock on the page, in a sentence.

use std::time::Duration;

use askama::Template;
use chrono::{DateTime, Utc};

use super::board::Lock;
use crate::lock::view;
use crate::output::plain::cut;
use crate::pages::{Timeline, between, words};
use crate::survey::doubt::Doubt;
use crate::survey::{Row, Standing};

/// The longest names that are shown whole.
pub(super) const NAME: usize = 48;
pub(super) const KEY: usize = 96;
pub(super) const PROBLEM: usize = 160;

/// The state of a lock as the page tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Leads,
    HandsOver,
    /// A holder without an observed renewal yet.
    Holds,
    /// As [`Holds`](Self::Holds), and by its own clock, the holder should have renewed since.
    Doubtful,
    RunOut,
    Free,
    Gone,
    NotARecord,
    Unreachable,
    /// The store has not answered for so long that the state may have changed.
    Unknown,
}

impl State {
    /// `is_old` tells that the last look is too old to be the truth.
    pub(super) fn of(row: &Row, is_old: bool) -> Self {
        match row.standing {
            Standing::Absent => Self::Gone,
            _ if is_old => Self::Unknown,
            Standing::Alive => Self::Leads,
            Standing::HandingOver => Self::HandsOver,
            Standing::Held => Self::Holds,
            Standing::Doubtful => Self::Doubtful,
            Standing::Expired => Self::RunOut,
            Standing::Free => Self::Free,
            Standing::Unreadable => Self::NotARecord,
            Standing::Unreachable => Self::Unreachable,
        }
    }

    pub(super) fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::RunOut | Self::Doubtful | Self::Gone | Self::NotARecord | Self::Unreachable | Self::Unknown
        )
    }

    pub(super) fn is_led(self) -> bool {
        matches!(self, Self::Leads | Self::HandsOver | Self::Holds)
    }

    /// The place on the page: those in trouble come first.
    pub(super) fn rank(self) -> u8 {
        match self {
            state if state.is_trouble() => 0,
            Self::HandsOver => 1,
            Self::Holds => 2,
            _ => 3,
        }
    }

    /// The name of the style class.
    fn tone(self) -> &'static str {
        match self {
            Self::Leads => "good",
            Self::HandsOver | Self::Holds => "calm",
            Self::Free => "idle",
            _ => "bad",
        }
    }
}

/// The values for the template of one lock.
#[derive(Debug, Template)]
#[template(path = "lock.html")]
pub(super) struct Line {
    state: State,
    key: String,
    holder: String,
    /// The session that holds the lock.
    session: Option<String>,
    /// The long work of that session's process.
    work: Option<String>,
    next: String,
    token: Option<u64>,
    /// The time since the term began, by the clocks of the holder and of this machine.
    held: Option<Duration>,
    unchanged: Duration,
    /// The sign that the holder is dead, unless the store or the looks have shown it.
    doubt: Option<Doubt>,
    problem: String,
    timeline: Timeline,
}

impl Line {
    pub(super) fn of(lock: &Lock, state: State, began: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let Lock { row, terms } = lock;
        let Row { key, view, doubt, .. } = row;
        let name = |name: Option<&String>| name.map(|name| cut(name, NAME)).unwrap_or_default();
        let session = view.session.as_ref().filter(|_| view.holder.is_some());
        Self {
            state,
            key: cut(key, KEY),
            holder: name(view.holder.as_ref()),
            session: session.map(|session| cut(&session.id, NAME)),
            work: session.and_then(|session| Some(view::work(session.object.as_ref()?.progress.as_ref()?))),
            next: name(view.preferred_holder.as_ref()),
            token: view.fencing_token,
            held: view.by_holders_clock.and_then(|times| Some(between(times.acquire_time?, now))),
            unchanged: row.unchanged_for(),
            doubt: doubt.filter(|doubt| matches!(doubt, Doubt::ByHolder(_))),
            problem: cut(&view.trouble(), PROBLEM),
            timeline: Timeline::of(terms, began, now),
        }
    }
}
