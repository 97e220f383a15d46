//! Rule S8: a member's long work, as reported in its session's record.

use serde::{Deserialize, Serialize};

use super::member::Member;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;

/// The name of the field in a session's record.
const PROGRESS: &str = "progress";

/// What a member was doing at its last renewal, if more of its requests were due than may be in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Progress {
    /// The number of locks that the member leads.
    pub leads: usize,
    /// The number of locks that the member is taking.
    pub taking: usize,
    /// The number of locks that the member is handing over for balance.
    pub handing_over: usize,
    /// How many locks wait to send their next request.
    pub waiting: usize,
    /// The whole seconds since requests began to wait.
    pub seconds: u64,
}

impl Progress {
    /// Reads the progress from a session's record; `None` if its member has no long work, or this is not the record of a session.
    #[must_use]
    pub fn of(session: &LeaderElectionRecord) -> Option<Self> {
        serde_json::from_str(session.unknown.get(PROGRESS)?).ok()
    }
}

impl Member {
    /// What the member is doing, if at its last renewal more requests were due than may be in flight.
    #[must_use]
    pub fn progress(&self, now: LocalInstant) -> Option<Progress> {
        let since = self.busy_since?;
        Some(Progress {
            leads: self.locks.iter().filter(|lock| lock.leads()).count(),
            taking: self.table.takes(),
            handing_over: self.handing_over.len(),
            waiting: self.due_locks.due(now),
            seconds: now.saturating_since(since).as_secs(),
        })
    }

    /// Reports long work in the local session's record, or removes an earlier report.
    pub(super) fn report_progress(&mut self, now: LocalInstant, session: &mut LeaderElectionRecord) {
        let is_busy = self.due_locks.due(now) > self.in_flight_limit;
        self.busy_since = is_busy.then(|| self.busy_since.unwrap_or(now));
        match self.progress(now) {
            Some(progress) => session.unknown.set(PROGRESS, &progress),
            None => session.unknown.remove(PROGRESS),
        }
    }
}
