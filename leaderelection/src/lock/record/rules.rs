//! Implements [`Record`], the trait through which the protocol's rules read and make records.

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
    /// A record with the fields that no rule decides. `replacing` overwrites the others.
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
        // Every write keeps the last 16 marks (rule 18). Usually, the decoration already has them.
        let marks = before.map(Self::completed_jobs).unwrap_or_default();
        let kept = record.completed_jobs();
        if marks.iter().take(REMEMBERED_JOBS - 1).any(|job| !kept.contains(job)) {
            record.keep_jobs(marks);
        }
        // If the mark is already there, it moves to the front. A forged one may be far behind, and would soon be lost.
        if let Some(job) = content.mark {
            record.mark_done(job);
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_mark_of_a_release_is_the_newest_even_if_it_was_there() {
        let jobs = ["a", "b", "forged"].map(|job| job.parse::<JobId>().unwrap());
        let mut before = LeaderElectionRecord::new("x", Duration::from_secs(15));
        jobs.iter().rev().for_each(|job| before.mark_done(job));
        let content = Content { mark: Some(&jobs[2]), ..Content::of(&before) };
        let released = LeaderElectionRecord::replacing(Some(&before), content, before.clone());
        assert_eq!(released.completed_jobs(), ["forged", "a", "b"]);
    }
}
