//! Jobs that have to succeed only once, and their marks in the record.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::config_error::ConfigError;
use crate::identity;
use crate::record::LeaderElectionRecord;

/// The number of jobs that a record remembers.
pub const REMEMBERED_JOBS: usize = 16;

/// The field of the record, a list of IDs with the newest first.
const COMPLETED_JOBS: &str = "completedJobs";

/// The name of a job that has to succeed only once, such as the date of a nightly job: see
/// [`run_once`](crate::DefaultLeaderElector::run_once).
///
/// ```
/// use leaderelection::JobId;
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

    /// Accepts what is accepted as an identity.
    fn from_str(id: &str) -> Result<Self, ConfigError> {
        match identity::problem_with(id) {
            Some(problem) => Err(ConfigError::new("job", format!("({:?}) {problem}", identity::excerpt(id)))),
            None => Ok(Self(id.into())),
        }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The outcome of [`run_once`](crate::DefaultLeaderElector::run_once).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobOutcome<T, E> {
    /// The job was done before: the lock says so. The work was not started.
    AlreadyDone,
    /// The work has succeeded, and the lock says so.
    Done(T),
    /// The work has succeeded, and the lock may not say so: the lease was lost, or the store did not take the last write.
    /// Another process may do the job again.
    Unmarked(T),
    /// The work has failed. Another process does the job.
    Failed(E),
}

impl LeaderElectionRecord {
    /// The jobs that were done under this lock, newest first. A record remembers [`REMEMBERED_JOBS`] of them.
    #[must_use]
    pub fn completed_jobs(&self) -> Vec<String> {
        let field = self.unknown.get(COMPLETED_JOBS);
        field.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }

    /// Returns `true` if the record says that the job is done.
    #[must_use]
    pub fn is_done(&self, job: &JobId) -> bool {
        self.completed_jobs().iter().any(|done| done == job.as_str())
    }

    pub(crate) fn mark_done(&mut self, job: &JobId) {
        let mut done = self.completed_jobs();
        done.retain(|done| done != job.as_str());
        done.insert(0, job.as_str().to_owned());
        done.truncate(REMEMBERED_JOBS);
        self.unknown.set(COMPLETED_JOBS, &done);
    }

    /// Adds the unknown fields of another record that this record does not have, and the marks of its jobs.
    #[cfg(feature = "migration")]
    pub(crate) fn keep_unknown_of(&mut self, other: &Self) {
        let mut done = self.completed_jobs();
        done.extend(other.completed_jobs().into_iter().filter(|job| !self.completed_jobs().contains(job)));
        done.truncate(REMEMBERED_JOBS);
        self.unknown.add_missing(&other.unknown);
        if !done.is_empty() {
            self.unknown.set(COMPLETED_JOBS, &done);
        }
    }
}
