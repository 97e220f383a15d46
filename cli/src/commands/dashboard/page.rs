//! The page, of a limited size.

use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock as _, SystemClock};

use super::board::{Board, Lock};
use super::line::LockRow;
use crate::cause::Cause;
use crate::lock::status::LockStatus;
use crate::pages::{between, line, stamp, time, whole, words};

/// The bytes of all lines. With the rest of the page, its style and its script, this stays below 100 kB.
const MOST: usize = 80_000;

/// The pauses after which a poll that shows nothing new is too old to be the truth.
const PATIENCE: u32 = 3;

/// The values for the template. The template escapes all of them but the lines, which have escaped their own.
#[derive(Debug, Template)]
#[template(path = "dashboard.html")]
struct Page<'a> {
    prefix: &'a str,
    /// The last poll is too old to be the truth.
    is_old: bool,
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
    fn of(locks: &[Lock]) -> Self {
        locks.iter().map(|lock| lock.row.view.status).fold(Self::default(), |counts, status| Self {
            all: counts.all + 1,
            led: counts.led + usize::from(status.is_led()),
            free: counts.free + usize::from(status == LockStatus::Free),
            trouble: counts.trouble + usize::from(status.is_trouble()),
        })
    }
}

/// Makes the answer of a page, of which this is the text.
pub(super) fn answer(html: Result<String, askama::Error>) -> Response {
    match html {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot render the dashboard");
            let text = "cannot render the page; see `leaderelect list` instead\n";
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

pub(super) fn html(prefix: &str, board: &Board, refresh: Duration) -> Result<String, askama::Error> {
    let (now, age) = (SystemClock.wall_time(), board.age());
    let is_old = is_old(age, refresh);
    let mut locks = board.locks.clone();
    if is_old {
        // Nothing is known any more, but that an object is gone.
        let cause = board.problem.as_ref().map_or(Cause::Silent, |problem| problem.cause);
        let known = locks.iter_mut().map(|lock| &mut lock.row.view).filter(|view| view.status != LockStatus::Absent);
        known.for_each(|view| (view.status, view.problem) = (LockStatus::Unknown(cause), None));
    }
    // Those in trouble come first. The sort is stable, and the locks are sorted by their keys.
    locks.sort_by_key(|lock| match lock.row.view.status {
        status if status.is_trouble() => 0,
        LockStatus::HandingOver => 1,
        LockStatus::Held => 2,
        _ => 3,
    });
    let (lines, shown) = that_fit(locks.iter().map(|lock| LockRow::of(lock, board.began, now)))?;
    let (counts, hidden) = (Counts::of(&locks), Counts::of(&locks[shown..]));
    let span = between(board.began, now);
    Page { prefix, is_old, counts, lines, hidden, board, age, refresh, span, now }.render()
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

/// Returns `true` if the last poll is too old to be the truth.
pub(super) fn is_old(age: Option<Duration>, refresh: Duration) -> bool {
    age.is_none_or(|age| age > refresh.saturating_mul(PATIENCE))
}

#[cfg(test)]
mod tests;
