//! A record as the rules of the protocol read it and make it.

use std::time::Duration;

use leaderelection_protocol::record::{Content, Record};

use super::LeaderElectionRecord;
use crate::lock::job::{JobId, REMEMBERED_JOBS};
use crate::store::Version;

impl Record for LeaderElectionRecord {
    type Identity = String;
    type WriteId = String;
    type Version = Version;
    type Job = JobId;
    type SessionId = std::sync::Arc<str>;
    /// A record, of which the rules replace what they decide.
    type Decoration = Self;

    fn holder(&self) -> Option<&String> {
        (!self.is_released()).then_some(&self.holder_identity)
    }

    fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    fn token(&self) -> u64 {
        self.leader_transitions
    }

    fn write_id(&self) -> Option<&String> {
        self.write_id.as_ref()
    }

    fn preferred(&self) -> Option<&String> {
        self.preferred_holder.as_ref()
    }

    fn is_done(&self, job: &JobId) -> bool {
        Self::is_done(self, job)
    }

    fn replacing(before: Option<&Self>, content: Content<'_, Self>, decoration: Self) -> Self {
        let mut record = Self {
            holder_identity: content.holder.cloned().unwrap_or_default(),
            lease_duration: content.lease_duration,
            leader_transitions: content.token,
            write_id: content.write_id,
            preferred_holder: content.preferred.cloned(),
            ..decoration
        };
        let marks = before.map(Self::completed_jobs).unwrap_or_default();
        let kept = record.completed_jobs();
        if marks.iter().take(REMEMBERED_JOBS - 1).any(|job| !kept.contains(job)) {
            record.keep_jobs(marks);
        }
        if let Some(job) = content.mark.filter(|job| !Self::is_done(&record, job)) {
            record.mark_done(job);
        }
        record
    }
}
