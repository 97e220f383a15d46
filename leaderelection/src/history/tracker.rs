//! What a candidate remembers of its lock, to write the history when a term ends.

use chrono::{DateTime, Utc};

use super::EndedTerm;
use crate::lock::record::LeaderElectionRecord;
use crate::term::{BeginReason, FencingToken, TermEndReason};

/// The last two terms that the answers of the lock have shown, and the beginning of the local one.
#[derive(Debug, Default)]
pub(crate) struct HistoryTracker {
    last: Option<TrackedTerm>,
    before: Option<TrackedTerm>,
    began: Option<DateTime<Utc>>,
    /// The job of the candidacy.
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
    /// An answer has shown this record.
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
                self.before = last.replace(seen);
            }
        }
    }

    /// A term of this process has begun. Returns the term before, if its leader cannot have written how it ended.
    pub(crate) fn started(&mut self, at: DateTime<Utc>, identity: &str, reason: &BeginReason) -> Option<EndedTerm> {
        self.began = Some(at);
        let is_expired = matches!(reason, BeginReason::Expired { .. } | BeginReason::Reclaimed);
        let TrackedTerm { holder, token, from, renewed } = self.before.take().filter(|_| is_expired)?;
        let why = TermEndReason::Expired { by: Some(identity.to_owned()) };
        Some(EndedTerm { holder, fencing_token: token, from, to: renewed, why, job: None, result: None })
    }

    /// A term of this process has ended.
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
            from: self.began.take(),
            to: Some(to),
            why: reason.clone(),
            job: self.job.clone(),
            result: result.map(str::to_owned),
        }
    }
}
