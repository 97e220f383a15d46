//! One lock: the policy's notes about it, and the state of its elector. What the rules need is in the
//! [`LockTable`](leaderelection_protocol::session::LockTable). A process may have 10,000 locks, so both are small.

use std::sync::Arc;

use leaderelection_protocol::policy::back_off::BackOff;

use crate::clock::LocalInstant;
use crate::lock::job::JobId;
use crate::lock::record::UnknownFields;
use crate::term::{Ending, TermEndReason, WorkEnd};

/// One lock with an elector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lock {
    /// The hash of the lock's name, for its ranking.
    pub(super) hash: u64,
    pub(super) phase: Phase,
    /// No write is sent before this moment. If the last read failed, no read is sent either.
    pub(super) not_before: LocalInstant,
    /// Since when nothing is known to hold the lock. The waits of rule S9 begin then.
    pub(super) free_since: LocalInstant,
    /// The leader that was last announced.
    pub(super) announced: Option<Arc<str>>,
    /// Fields of the record that are rarely set.
    pub(super) extras: Option<Box<Extras>>,
    /// `true` if the record is incompatible with this configuration.
    pub(super) is_incompatible: bool,
    /// `true` if the record has the largest token that readers accept.
    pub(super) is_exhausted: bool,
    /// `true` if the next request must be a read.
    pub(super) must_read: bool,
    /// `true` if the current listing has shown this lock, or may miss it because the lock was added later.
    pub(super) is_listed: bool,
    /// `true` if a read was sent since the lock became free, to find out if a member with a better rank has taken it.
    pub(super) has_read: bool,
    /// `true` after a take with an unknown outcome: it may have been committed, or may still be.
    pub(super) in_doubt: bool,
    /// `true` if the last read failed, so that the next one waits.
    pub(super) read_failed: bool,
    pub(super) failures: BackOff,
    /// `true` if the term ends when its work is complete.
    pub(super) ends_with_work: bool,
    /// How the work of the term ended; `None` again once the candidacy is over.
    pub(super) work_end: Option<WorkEnd>,
    /// `true` after the elector was told to stop.
    pub(super) stop_asked: bool,
}

/// The state of a lock's elector.
///
/// ```text
///   Compete      our write is committed, and the session is valid: Start
///  Idle --> Competing --------------------> Leading
///   ^           |                              | the term, or its session, is over: Stop
///   |           | Stop, and a write may have   v
///   |           | won                       Ending
///   |           +----------------------------->|
///   +<-----------------------------------------+
///                                      Finished
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// No candidacy.
    Idle,
    /// A candidate that does not lead.
    Competing,
    /// The term has started.
    Leading { token: u64 },
    /// The work ends, and then the lock is released if it still names the local session. If the session is over as
    /// well, the elector waits until the session is closed.
    Ending(Box<Ending>),
}

/// Fields of a lock's record that are rarely set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Extras {
    pub(super) unknown: UnknownFields,
    pub(super) preferred: Option<String>,
    /// The number of fail-back requests, which every write keeps (rule 24).
    pub(super) failbacks: u8,
}

/// The job of a candidacy (rule 18).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) id: JobId,
    /// `true` if the lock says that the job is done.
    pub(super) done: bool,
}

impl Lock {
    pub(super) fn new(hash: u64) -> Self {
        Self {
            hash,
            phase: Phase::Idle,
            not_before: LocalInstant::default(),
            free_since: LocalInstant::default(),
            announced: None,
            extras: None,
            is_incompatible: false,
            is_exhausted: false,
            must_read: false,
            is_listed: true,
            has_read: false,
            in_doubt: false,
            read_failed: false,
            failures: BackOff::default(),
            ends_with_work: false,
            work_end: None,
            stop_asked: false,
        }
    }

    /// Returns `true` while a term leads.
    pub(super) fn leads(&self) -> bool {
        matches!(self.phase, Phase::Leading { .. })
    }

    /// Returns `true` while the lock is being released.
    pub(super) fn is_being_released(&self) -> bool {
        matches!(&self.phase, Phase::Ending(ending) if ending.is_releasing())
    }

    /// Returns the candidate that should lead next, if there is one and it is not `identity`.
    pub(super) fn prefers_other_than(&self, identity: &str) -> Option<&str> {
        self.extras.as_ref()?.preferred.as_deref().filter(|preferred| *preferred != identity)
    }

    /// Names the next leader in the record of the release, if the term ended with a transfer.
    pub(super) fn prepare_release(&mut self) {
        // Set here, not at the end of the term, because a read in between would replace the name.
        let Phase::Ending(ending) = &self.phase else { return };
        if let Some(TermEndReason::Transferred { to }) = ending.reason() {
            self.extras.get_or_insert_default().preferred = Some(to.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_lock_is_small() {
        assert!(size_of::<Lock>() <= 104, "{} bytes", size_of::<Lock>());
    }
}
