//! One lock on the page, in a sentence.

use askama::Template;
use chrono::{DateTime, Utc};
use leaderelection::FencingToken;

use super::board::Lock;
use crate::cause::Cause;
use crate::history::Term;
use crate::lock::status::LockStatus;
use crate::lock::view;
use crate::output::escape::cut;
use crate::pages::{NAME, Timeline, advice, between, last_leader, sentence};
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
    problem: Option<String>,
    /// The last leader in a sentence, as HTML, if the leader is unknown now.
    last_leader: Option<String>,
    /// As HTML.
    next_step: Option<String>,
    timeline: Timeline,
}

impl LockRow {
    pub(super) fn of(lock: &Lock, began: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let Lock { row, terms } = lock;
        let Row { key, view, .. } = row;
        let session = view.session.as_ref().filter(|_| view.holder.is_some());
        let lasted = match view.status {
            // By the clocks of the holder and of this machine.
            status if status.is_led() || matches!(status, LockStatus::Free | LockStatus::Failed) => {
                view.since().map(|since| between(since, now))
            }
            LockStatus::Expired | LockStatus::Unknown(Cause::NotARecord) => Some(row.unchanged_for()),
            _ => None,
        };
        let is_unknown = matches!(view.status, LockStatus::Unknown(_));
        // The page tells once what is true of all locks.
        let step = view.next_step().filter(|_| !is_unknown || view.problem.is_some());
        Self {
            status: view.status,
            key: cut(key, KEY),
            sentence: sentence(view, NAME, lasted),
            session: session.map(|session| cut(&session.id, NAME)),
            work: session.and_then(|session| Some(view::work(session.object.as_ref()?.progress.as_ref()?))),
            token: view.fencing_token.filter(|_| !is_unknown),
            last_leader: (is_unknown && view.holder.is_some()).then(|| last_leader(view, NAME)),
            next_step: step.as_deref().map(advice),
            problem: view.problem.as_ref().map(|problem| cut(problem, PROBLEM)),
            timeline: Timeline::of(&as_known(terms, view.status), began, now),
        }
    }
}

/// The terms as far as they are known: that of a leader who is unknown now is shown until it was last seen to lead.
fn as_known(terms: &[Term], status: LockStatus) -> Vec<Term> {
    let mut terms = terms.to_vec();
    if !status.is_led()
        && let Some(last) = terms.last_mut()
    {
        last.end_when_last_seen(&format!("not known: {status}"));
    }
    terms
}
