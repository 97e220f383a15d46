//! The task that polls the locks and keeps the board.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::TermEndReason;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use tokio::sync::watch;

use super::board::{Board, Lock, Problem, REMEMBERED};
use super::past;
use crate::cause::Cause;
use crate::history::{self, Term};
use crate::lock::status::LockStatus;
use crate::lock::view::View;
use crate::pages::before;
use crate::survey::{Row, Scanner};

/// The time for which a lock is shown whose object was deleted while somebody held it.
const RETENTION_OF_GONE: Duration = Duration::from_secs(60 * 60);

/// The locks and their terms.
#[derive(Debug)]
pub(super) struct History {
    survey: Scanner,
    /// The terms of each lock, by its key.
    terms: BTreeMap<String, Vec<Term>>,
    /// The locks that were deleted, and the moments of it.
    gone: BTreeMap<String, (LocalInstant, Row)>,
    board: Board,
    /// The time of the first poll.
    began: DateTime<Utc>,
}

impl History {
    pub(super) fn new(survey: Scanner) -> Self {
        let board = Board::default();
        let began = board.began;
        Self { survey, terms: BTreeMap::new(), gone: BTreeMap::new(), board, began }
    }

    /// Looks at the locks without end. An error of the store does not end it.
    pub(super) async fn keep(mut self, pause: Duration, shown: &watch::Sender<Arc<Board>>) -> Infallible {
        loop {
            match self.survey.scan(|_, _| {}).await {
                Ok(()) => {
                    let rows = self.survey.locks();
                    self.take_in(rows, SystemClock.now(), SystemClock.wall_time());
                }
                Err(failure) => {
                    tracing::warn!(error = %failure, "the locks cannot be listed; trying again");
                    self.board.problem = Some(Problem::of(&failure));
                }
            }
            shown.send_replace(Arc::new(self.board.clone()));
            tokio::time::sleep(pause).await;
        }
    }

    fn take_in(&mut self, rows: Vec<Row>, now: LocalInstant, at: DateTime<Utc>) {
        let rows = self.with_gone(rows, now);
        let keys: BTreeSet<_> = rows.iter().map(|row| row.key.clone()).collect();
        self.terms.retain(|key, _| keys.contains(key));
        let ended = self.survey.ended_terms();
        let locks = rows.into_iter().map(|row| {
            let terms = self.terms.entry(row.key.clone()).or_default();
            record(terms, &row, at);
            if let Some(ended) = ended.get(&row.key) {
                history::join(terms, ended);
                terms.sort_by_key(|term| term.since);
                terms.drain(..terms.len().saturating_sub(REMEMBERED));
            }
            Lock { terms: terms.clone(), row }
        });
        self.board.locks = locks.collect();
        let known = self.board.locks.iter().flat_map(|lock| &lock.terms).filter_map(|term| term.since).min();
        self.board.began = past::beginning(self.began, known);
        self.board.runs = past::runs(ended);
        (self.board.read_at, self.board.problem) = (Some((now, at)), None);
        self.board.away = self.survey.away().map(Problem::of_part);
    }

    /// Adds the locks that were deleted while somebody held them.
    fn with_gone(&mut self, mut rows: Vec<Row>, now: LocalInstant) -> Vec<Row> {
        let there: BTreeSet<_> = rows.iter().map(|row| row.key.clone()).collect();
        let held = self.board.locks.iter().map(|lock| &lock.row);
        for row in held.filter(|row| row.view.holder.is_some() && !there.contains(&row.key)) {
            let gone = Row { view: View { status: LockStatus::Absent, ..row.view.clone() }, ..row.clone() };
            self.gone.entry(row.key.clone()).or_insert((now, gone));
        }
        self.gone.retain(|key, (since, _)| !there.contains(key) && now.saturating_since(*since) < RETENTION_OF_GONE);
        rows.extend(self.gone.values().map(|(_, row)| row.clone()));
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        rows
    }
}

/// Adds what one poll shows to the terms.
fn record(terms: &mut Vec<Term>, row: &Row, at: DateTime<Utc>) {
    let view = &row.view;
    let end = match view.status {
        // What cannot be read, or may be long over, tells nothing.
        LockStatus::Doubtful | LockStatus::DuplicateIdentity => return,
        LockStatus::Unknown(cause) if cause != Cause::NotARecord => return,
        LockStatus::Led | LockStatus::Held | LockStatus::HandingOver => None,
        LockStatus::Expired => Some(TermEndReason::Expired { by: None }),
        LockStatus::Free | LockStatus::Failed => Some(TermEndReason::Released),
        LockStatus::Absent => Some(TermEndReason::Deleted),
        LockStatus::Unknown(_) => Some(TermEndReason::Unreadable),
    };
    let lease = view.lease().filter(|_| view.status == LockStatus::Expired);
    let overdue = lease.map(|lease| row.unchanged_for().saturating_sub(lease)).unwrap_or_default();
    let last = terms.last_mut().filter(|term| term.ended.is_none());
    match (end, &view.holder) {
        (None, Some(holder)) => {
            if let Some(last) = last {
                if last.holder == *holder && last.fencing_token == view.fencing_token {
                    last.seen(at);
                    return;
                }
                last.end(at, TermEndReason::TakenOver { by: holder.clone() });
            }
            if terms.len() == REMEMBERED {
                terms.remove(0);
            }
            terms.push(Term::begin(holder, view.fencing_token, at));
        }
        (end, _) => {
            if let Some(last) = last {
                last.end(before(at, overdue), end.unwrap_or(TermEndReason::Released));
            }
        }
    }
}

#[cfg(test)]
mod tests;
