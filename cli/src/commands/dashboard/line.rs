//! One lock on the page, in a sentence.

use std::time::Duration;

use askama::Template;
use chrono::{DateTime, Utc};
use leaderelection::FencingToken;

use super::board::Lock;
use crate::lock::status::LockStatus;
use crate::lock::view;
use crate::output::escape::cut;
use crate::pages::{NAME, Timeline, between, capital, last_leader, sentence, words};
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
    /// The time since the last renewal, if it is longer than the lease.
    unchanged: Option<Duration>,
    problem: Option<String>,
    /// The last leader in a sentence, as HTML, if the leader is unknown now.
    last_leader: Option<String>,
    next_step: Option<String>,
    timeline: Timeline,
}

impl LockRow {
    pub(super) fn of(lock: &Lock, began: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let Lock { row, terms } = lock;
        let Row { key, view, .. } = row;
        let session = view.session.as_ref().filter(|_| view.holder.is_some());
        // By the clocks of the holder and of this machine.
        let lasted = || Some(between(view.since()?, now));
        let has_a_time = view.status.is_led() || matches!(view.status, LockStatus::Free | LockStatus::Failed);
        let is_unknown = matches!(view.status, LockStatus::Unknown(_));
        // The page tells once what is true of all locks.
        let step = view.next_step().filter(|_| !is_unknown || view.problem.is_some());
        Self {
            status: view.status,
            key: cut(key, KEY),
            sentence: sentence(view, NAME, lasted().filter(|_| has_a_time)),
            session: session.map(|session| cut(&session.id, NAME)),
            work: session.and_then(|session| Some(view::work(session.object.as_ref()?.progress.as_ref()?))),
            token: view.fencing_token,
            unchanged: Some(row.unchanged_for()).filter(|_| view.status == LockStatus::Expired),
            last_leader: (is_unknown && view.holder.is_some()).then(|| last_leader(view, NAME)),
            next_step: step.map(capital),
            problem: view.problem.as_ref().map(|problem| cut(problem, PROBLEM)),
            timeline: Timeline::of(terms, began, now),
        }
    }
}
