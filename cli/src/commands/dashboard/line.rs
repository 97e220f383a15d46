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

/// The state of a lock as the page tells it; unknown if the store has not answered for so long that it may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(pub(super) Option<Standing>);

impl State {
    /// `is_old` tells that the last look is too old to be the truth.
    pub(super) fn of(row: &Row, is_old: bool) -> Self {
        Self(Some(row.standing).filter(|standing| !is_old || *standing == Standing::Absent))
    }

    pub(super) fn is_trouble(self) -> bool {
        use Standing::{Absent, Doubtful, Expired, Unreachable, Unreadable};
        matches!(self.0, None | Some(Expired | Doubtful | Absent | Unreadable | Unreachable))
    }

    pub(super) fn is_led(self) -> bool {
        matches!(self.0, Some(Standing::Alive | Standing::HandingOver | Standing::Held))
    }

    /// The place on the page: those in trouble come first.
    pub(super) fn rank(self) -> u8 {
        match self.0 {
            _ if self.is_trouble() => 0,
            Some(Standing::HandingOver) => 1,
            Some(Standing::Held) => 2,
            _ => 3,
        }
    }

    /// The name of the style class.
    fn tone(self) -> &'static str {
        match self.0 {
            Some(Standing::Alive) => "good",
            Some(Standing::HandingOver | Standing::Held) => "calm",
            Some(Standing::Free) => "idle",
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
