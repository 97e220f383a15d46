//! What a candidate remembers of the terms of its lock, to write them into the history.

use chrono::{DateTime, Utc};

use super::EndedTerm;
use crate::lock::record::LeaderElectionRecord;
use crate::term::{BeginReason, FencingToken, TermEndReason};

/// The longest result of a term, in characters. A history's size is limited, so longer results would displace terms.
const MAX_RESULT: usize = 1024;

/// The last two terms that reads and writes of the lock have shown, and the start of this process's term.
#[derive(Debug, Default)]
pub(crate) struct HistoryTracker {
    last: Option<TrackedTerm>,
    /// The term before `last`.
    previous: Option<TrackedTerm>,
    own_start: Option<DateTime<Utc>>,
    /// The job for which this process competes.
    pub(crate) job: Option<String>,
}

#[derive(Debug)]
struct TrackedTerm {
    holder: String,
    token: FencingToken,
    from: Option<DateTime<Utc>>,
    renewed: Option<DateTime<Utc>>,
}

impl HistoryTracker {
    /// Remembers the term of `record`, which an answer of the store has shown.
    pub(crate) fn saw(&mut self, record: &LeaderElectionRecord) {
        if record.is_released() {
            return;
        }
        let token = record.leader_transitions.into();
        match &mut self.last {
            Some(last) if last.token == token && last.holder == record.holder_identity => {
                last.renewed = record.renew_time
            }
            last => {
                let seen = TrackedTerm {
                    holder: record.holder_identity.clone(),
                    token,
                    from: record.acquire_time,
                    renewed: record.renew_time,
                };
                self.previous = last.replace(seen);
            }
        }
    }

    /// Records the start of a term of this process. If the previous term expired, returns its entry for the history,
    /// because the leader of that term may be dead.
    pub(crate) fn started(&mut self, at: DateTime<Utc>, identity: &str, reason: &BeginReason) -> Option<EndedTerm> {
        self.own_start = Some(at);
        let is_expired = matches!(reason, BeginReason::Expired { .. } | BeginReason::Reclaimed);
        // `last` is the new term already: its first write was seen before.
        let TrackedTerm { holder, token, from, renewed } = self.previous.take().filter(|_| is_expired)?;
        let why = TermEndReason::Expired { by: Some(identity.to_owned()) };
        Some(EndedTerm { holder, fencing_token: token, from, to: renewed, why, job: None, result: None })
    }

    /// Returns the entry for a term of this process that has ended.
    pub(crate) fn stopped(
        &mut self,
        (identity, fencing_token): (&str, FencingToken),
        to: DateTime<Utc>,
        reason: &TermEndReason,
        result: Option<&str>,
    ) -> EndedTerm {
        EndedTerm {
            holder: identity.to_owned(),
            fencing_token,
            from: self.own_start.take(),
            to: Some(to),
            why: reason.clone(),
            job: self.job.clone(),
            result: result.map(|result| result.chars().take(MAX_RESULT).collect()),
        }
    }
}
