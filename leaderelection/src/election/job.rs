//! Rule 18: a job that has to succeed only once.

use crate::lock::job::JobId;
use crate::lock::record::LeaderElectionRecord;

/// The job of a candidacy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    id: JobId,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Progress {
    Open,
    /// The work of this candidate has succeeded, and the lock does not say so yet, as far as is known.
    Succeeded,
    /// The lock says so.
    Marked,
}

impl Job {
    pub(super) fn new(id: JobId) -> Self {
        Self { id, progress: Progress::Open }
    }

    pub(super) fn succeeded(&mut self) {
        self.progress = Progress::Succeeded;
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.progress == Progress::Succeeded
    }

    /// Writes the job into the record of a release, if the work has succeeded.
    pub(super) fn mark(&self, record: &mut LeaderElectionRecord) {
        if self.has_succeeded() {
            record.mark_done(&self.id);
        }
    }

    /// Takes the news that a release has landed. Every release after the success carries the mark.
    pub(super) fn released(&mut self) {
        if self.has_succeeded() {
            self.progress = Progress::Marked;
        }
    }

    /// Takes a record that a read has shown. It may be that of a later term, which keeps the marks of all releases.
    pub(super) fn saw(&mut self, record: &LeaderElectionRecord) {
        if self.has_succeeded() && self.is_done(record) {
            self.progress = Progress::Marked;
        }
    }

    /// Returns `true` if the record says that the job is done.
    pub(super) fn is_done(&self, record: &LeaderElectionRecord) -> bool {
        record.is_done(&self.id)
    }

    pub(super) fn is_marked(&self) -> bool {
        self.progress == Progress::Marked
    }
}
