//! Jobs that have to succeed only once, and their marks in the record.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::lock::identity;
use crate::lock::record::{COMPLETED_JOBS, LeaderElectionRecord};
use crate::timings::config_error::ConfigError;

/// The number of jobs that a record remembers, so each mark outlives 16 newer ones.
pub const REMEMBERED_JOBS: usize = 17;

/// The largest number of marks in a record: the full lists of five locks, which may become the parts of one lock.
const MOST_MARKS: usize = 5 * REMEMBERED_JOBS;

/// The name of a job that has to succeed only once, such as the date of a nightly job: see
/// [`run_once`](crate::Elector::run_once).
///
/// ```
/// use leaderelection::lock::JobId;
///
/// let id: JobId = "2026-11-22".parse()?;
/// assert!("".parse::<JobId>().is_err());
/// # Ok::<(), leaderelection::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobId(Arc<str>);

impl JobId {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for JobId {
    type Err = ConfigError;

    /// Fails if `id` is not valid as an identity.
    fn from_str(id: &str) -> Result<Self, ConfigError> {
        identity::check("job", id).map(|()| Self(id.into()))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The outcome of [`run_once`](crate::Elector::run_once).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobOutcome<T, E> {
    /// The lock has the job's mark, so the job was done before. The work was not started.
    AlreadyDone,
    /// The work has succeeded, and the lock has the job's mark.
    Done(T),
    /// The work has succeeded, but the lock may not have the job's mark: the lease was lost, or the last write failed.
    /// Another process may do the job again.
    Unmarked(T),
    /// The work has failed. The next leader does the job.
    Failed(E),
}

impl LeaderElectionRecord {
    /// The jobs that were done under this lock, newest first. A record remembers at least the last [`REMEMBERED_JOBS`]
    /// of them. Entries of the record's list that are not valid IDs are left out.
    #[must_use]
    pub fn completed_jobs(&self) -> Vec<String> {
        let field = self.unknown.get(COMPLETED_JOBS);
        let listed: Vec<&RawValue> = field.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let jobs = listed.into_iter().filter_map(|json| serde_json::from_str(json.get()).ok());
        jobs.filter(|job: &String| identity::problem_with(job).is_none()).collect()
    }

    /// Returns `true` if the record has the job's mark.
    #[must_use]
    pub fn is_done(&self, job: &JobId) -> bool {
        self.completed_jobs().iter().any(|done| done == job.as_str())
    }

    /// Adds the mark of a job. If the record has [`REMEMBERED_JOBS`] marks or more, its oldest mark is removed.
    pub(crate) fn mark_done(&mut self, job: &JobId) {
        let mut done = self.completed_jobs();
        let most = done.len().clamp(REMEMBERED_JOBS, MOST_MARKS);
        done.retain(|done| done != job.as_str());
        done.insert(0, job.as_str().to_owned());
        self.remember(done, most);
    }

    /// Removes marks beyond the limit, and entries that are not valid IDs.
    pub(crate) fn forget_oldest_jobs(&mut self) {
        if self.unknown.get(COMPLETED_JOBS).is_some() {
            self.remember(self.completed_jobs(), MOST_MARKS);
        }
    }

    /// Adds the job marks of `other`, and those of its unknown fields that this record does not have.
    #[cfg(feature = "majority")]
    pub fn keep_unknown_of(&mut self, other: &Self) {
        self.keep_jobs(other.completed_jobs());
        self.unknown.add_missing(&other.unknown);
    }

    /// Adds the marks of another record in the order of their age: `[d, b]` and `[c, b, a]` become `[d, c, b, a]`.
    /// Marks have no date, but both lists begin with the newest. So a mark that only `theirs` has goes directly before
    /// the next older one that both have, or else to the end, where it is forgotten first.
    pub(crate) fn keep_jobs(&mut self, theirs: Vec<String>) {
        if theirs.is_empty() {
            return;
        }
        let mut done = self.completed_jobs();
        let mut at = done.len();
        for job in theirs.into_iter().rev() {
            match done.iter().position(|known| *known == job) {
                Some(known) => at = known,
                None => done.insert(at, job),
            }
        }
        self.remember(done, MOST_MARKS);
    }

    fn remember(&mut self, mut done: Vec<String>, most: usize) {
        done.truncate(most);
        self.unknown.set(COMPLETED_JOBS, &done);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn record(jobs: impl IntoIterator<Item = usize>, name: &str) -> LeaderElectionRecord {
        let mut record = LeaderElectionRecord::new("", Duration::from_secs(1));
        let jobs: Vec<String> = jobs.into_iter().map(|job| format!("{name}-{job}")).collect();
        record.unknown.set(COMPLETED_JOBS, &jobs);
        record
    }

    #[cfg(feature = "majority")]
    #[test]
    fn full_lists_lose_no_mark_when_they_become_one() {
        let locks = ["a", "b", "c", "d", "e"].map(|name| record(0..REMEMBERED_JOBS, name));
        let (mut ours, others) = (locks[0].clone(), &locks[1..]);
        for theirs in others {
            ours.keep_unknown_of(theirs);
        }
        let all = ours.completed_jobs();
        let lists: Vec<String> = locks.iter().flat_map(LeaderElectionRecord::completed_jobs).collect();
        assert_eq!(all, lists, "the newest list is first, and whole");
        for theirs in &locks {
            ours.keep_unknown_of(theirs);
        }
        assert_eq!(ours.completed_jobs(), all);
        // From now on, each new mark replaces one, so every job outlives as many others as in its own list.
        for job in 0..REMEMBERED_JOBS {
            ours.mark_done(&format!("x-{job}").parse().unwrap());
        }
        assert_eq!(ours.completed_jobs()[REMEMBERED_JOBS..], all[..4 * REMEMBERED_JOBS]);
    }

    /// A list of the last jobs, newest first: those with the numbers from `oldest` to `newest`.
    #[cfg(feature = "majority")]
    fn numbered(newest: usize, oldest: usize) -> LeaderElectionRecord {
        record((oldest..=newest).rev(), "a")
    }

    /// A part that was unavailable has only old marks. If a write reached only one part, the others lack its mark.
    #[cfg(feature = "majority")]
    #[test]
    fn lists_of_one_lock_keep_their_order_when_they_are_joined() {
        for [ours, theirs] in
            [[(40, 25), (20, 5)], [(40, 25), (30, 15)], [(30, 15), (40, 25)], [(17, 2), (16, 1)], [(16, 1), (17, 2)]]
        {
            let mut joined = numbered(ours.0, ours.1);
            joined.keep_unknown_of(&numbered(theirs.0, theirs.1));
            let jobs = joined.completed_jobs();
            let number = |job: &String| job[2..].parse::<usize>().unwrap();
            assert!(
                jobs.iter().map(number).is_sorted_by(|newer, older| newer > older),
                "{ours:?} {theirs:?}: {jobs:?}"
            );
        }
    }

    #[cfg(feature = "majority")]
    #[test]
    fn unknown_fields_of_another_record_are_added_and_replace_none() {
        let (mut ours, mut theirs) = (record(0..1, "a"), record(0..1, "a"));
        ours.unknown.set("both", &"ours");
        theirs.unknown.set("both", &"theirs");
        theirs.unknown.set("other", &"theirs");
        ours.keep_unknown_of(&theirs);
        assert_eq!(["both", "other"].map(|name| ours.unknown.get(name)), [Some(r#""ours""#), Some(r#""theirs""#)]);
    }

    #[test]
    fn the_list_does_not_grow_beyond_what_is_remembered() {
        for (before, after) in [(0, 1), (16, 17), (17, 17), (20, 20), (85, 85), (1_000, 85)] {
            let mut record = record(0..before, "a");
            record.mark_done(&"new".parse().unwrap());
            record.mark_done(&"new".parse().unwrap());
            let done = record.completed_jobs();
            assert_eq!((done.len(), done[0].as_str()), (after, "new"), "{before}");
        }
    }
}
