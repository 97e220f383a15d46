//! The page, of a limited size.

use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock as _, SystemClock};

use super::board::Board;
use super::line::{Line, State};
use crate::pages::{between, line, stamp, time, whole, words};
use crate::survey::Standing;

/// The bytes of all lines. With the rest of the page, its style and its script, this stays below 100 kB.
const MOST: usize = 80_000;

/// The pauses after which a look that shows nothing new is too old to be the truth.
const PATIENCE: u32 = 3;

/// The values for the template. The template escapes all of them but the lines, which have escaped their own.
#[derive(Debug, Template)]
#[template(path = "dashboard.html")]
struct Page<'a> {
    prefix: &'a str,
    verdict: Verdict,
    counts: Counts,
    lines: String,
    /// The locks that do not fit.
    hidden: Counts,
    board: &'a Board,
    age: Option<Duration>,
    refresh: Duration,
    /// The time that the timelines show.
    span: Duration,
    now: DateTime<Utc>,
}

/// The number of locks, by their states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    all: usize,
    led: usize,
    free: usize,
    trouble: usize,
}

impl Counts {
    fn of(states: impl Iterator<Item = State>) -> Self {
        states.fold(Self::default(), |counts, state| Self {
            all: counts.all + 1,
            led: counts.led + usize::from(state.is_led()),
            free: counts.free + usize::from(state.0 == Some(Standing::Free)),
            trouble: counts.trouble + usize::from(state.is_trouble()),
        })
    }
}

/// The state of all locks in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Well,
    Trouble,
    Empty,
    /// The store has not answered for too long.
    Unknown,
}

impl Verdict {
    fn of(counts: Counts, is_old: bool) -> Self {
        match counts {
            _ if is_old => Self::Unknown,
            Counts { all: 0, .. } => Self::Empty,
            Counts { trouble: 0, .. } => Self::Well,
            _ => Self::Trouble,
        }
    }

    /// The name of the style class.
    fn tone(self) -> &'static str {
        match self {
            Self::Well => "good",
            Self::Empty => "calm",
            Self::Trouble | Self::Unknown => "bad",
        }
    }
}

/// Makes the answer of a page, of which this is the text.
pub(super) fn answer(html: Result<String, askama::Error>) -> Response {
    match html {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "the dashboard cannot be made");
            let text = "the page cannot be made; `leaderelect list` tells the same\n";
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

pub(super) fn html(prefix: &str, board: &Board, refresh: Duration) -> Result<String, askama::Error> {
    let (now, age) = (SystemClock.wall_time(), board.age());
    let is_old = is_old(age, refresh);
    let mut locks: Vec<_> = board.locks.iter().map(|lock| (State::of(&lock.row, is_old), lock)).collect();
    // The sort is stable, and the locks are sorted by their keys.
    locks.sort_by_key(|(state, _)| state.rank());
    let (lines, shown) = that_fit(locks.iter().map(|(state, lock)| Line::of(lock, *state, board.began, now)))?;
    let counts = Counts::of(locks.iter().map(|(state, _)| *state));
    let hidden = Counts::of(locks[shown..].iter().map(|(state, _)| *state));
    let verdict = Verdict::of(counts, is_old);
    let span = between(board.began, now);
    Page { prefix, verdict, counts, lines, hidden, board, age, refresh, span, now }.render()
}

/// Returns the first lines, as many as fit, and their number.
pub(super) fn that_fit(all: impl Iterator<Item = impl Template>) -> Result<(String, usize), askama::Error> {
    let (mut lines, mut count) = (String::new(), 0);
    for line in all {
        let line = line.render()?;
        if lines.len() + line.len() > MOST {
            break;
        }
        lines.push_str(&line);
        count += 1;
    }
    Ok((lines, count))
}

/// Returns `true` if the last look is too old to be the truth.
pub(super) fn is_old(age: Option<Duration>, refresh: Duration) -> bool {
    age.is_none_or(|age| age > refresh.saturating_mul(PATIENCE))
}

#[cfg(test)]
mod tests;
