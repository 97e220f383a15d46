//! One lock on the page, in a sentence.

use std::time::Duration;

use askama::Template;
use chrono::{DateTime, Utc};
use leaderelection::FencingToken;

use super::board::Lock;
use crate::lock::status::LockStatus;
use crate::lock::view;
use crate::output::escape::cut;
use crate::pages::{NAME, Timeline, between, sentence, words};
use crate::survey::Row;

/// The longest texts that are shown whole.
pub(super) const KEY: usize = 96;
pub(super) const PROBLEM: usize = 160;

/// The values for the template of one lock.
#[derive(Debug, Template)]
#[template(path = "lock.html")]
pub(super) struct LockRow {
    status: LockStatus,
    key: String,
    /// The status in a sentence, as HTML.
    sentence: String,
    /// The session that holds the lock.
    session: Option<String>,
    /// The long work of that session's process.
    work: Option<String>,
    token: Option<FencingToken>,
    /// The time since the term began, by the clocks of the holder and of this machine.
    held: Option<Duration>,
    /// The time since the last renewal, if it is longer than the lease.
    unchanged: Option<Duration>,
    problem: Option<String>,
    /// What a reader does who was called for this lock.
    advice: Option<&'static str>,
    timeline: Timeline,
}

impl LockRow {
    pub(super) fn of(lock: &Lock, began: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let Lock { row, terms } = lock;
        let Row { key, view, .. } = row;
        let session = view.session.as_ref().filter(|_| view.holder.is_some());
        let held = || Some(between(view.by_holders_clock?.acquire_time?, now));
        Self {
            status: view.status,
            key: cut(key, KEY),
            sentence: sentence(view, NAME),
            session: session.map(|session| cut(&session.id, NAME)),
            work: session.and_then(|session| Some(view::work(session.object.as_ref()?.progress.as_ref()?))),
            token: view.fencing_token,
            held: held().filter(|_| view.status.is_led()),
            unchanged: Some(row.unchanged_for()).filter(|_| view.status == LockStatus::Expired),
            advice: advice(view.status),
            problem: view.problem.as_ref().map(|problem| cut(problem, PROBLEM)),
            timeline: Timeline::of(terms, began, now),
        }
    }
}

/// What to do about a lock in trouble. A store that is not reached, or an object that is no record, has its own advice in the problem.
fn advice(status: LockStatus) -> Option<&'static str> {
    match status {
        LockStatus::Expired => Some("No candidate has taken over: start one, or read the logs of those that run."),
        LockStatus::Doubtful => Some("Check that process, or watch it with `leaderelect status --watch-for`."),
        LockStatus::Failed => {
            Some("`leaderelect history` tells where; read the log there. The next candidate runs it again.")
        }
        LockStatus::Absent => Some("Find out who deleted it; the next candidate creates it again."),
        _ => None,
    }
}
