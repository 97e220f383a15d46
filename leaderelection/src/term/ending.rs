//! The end of the term of a session's lock (rules 8 and 9): leadership ends, then the work, then the lock is released.

use std::time::Duration;

use super::outcome::RunOutcome;
use super::reason::TermEndReason;
use super::work::WorkEnd;
use crate::clock::LocalInstant;

/// What remains of a term after its leadership has ended: to end the work, and to release the lock.
///
/// ```text
///   leadership ended             the work ended
///  ------------------> Stopping -----------------> Releasing -----> over: released, no longer ours, or given up
///                         | drop_by                    ^
///                         v           the work ended   |
///                      Dropped ------------------------+
///                         | a margin later
///                         +-----> over: the work is abandoned, and the lock is not released
/// ```
///
/// If a candidacy without a term may have acquired the lock, its ending begins with `Releasing`. If the session itself
/// ends, any stage becomes `OfSession`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ending {
    /// The token of the term, and the reason for its end; `None` if no term had started.
    term: Option<(u64, TermEndReason)>,
    stage: Stage,
    /// The deadline of the stage. `OfSession` has none.
    until: LocalInstant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The work was told to stop, and may still run. After the deadline, it is dropped, and gets `margin` to end.
    Stopping { margin: Duration },
    /// The work was dropped, and may still run.
    Dropped,
    /// The work has ended, and the lock is being released.
    Releasing,
    /// The end of the session waits for the work, and frees the lock.
    OfSession,
}

/// The stage whose deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    /// The work did not stop: drop it.
    Work,
    /// The dropped work did not end: abandon it. The ending is over.
    DroppedWork,
    /// The release did not succeed: give it up. The ending is over.
    Release,
}

impl Ending {
    /// Begins the end of a term. `lease_until` is the first moment at which another candidate may take the lock. Work
    /// that does not stop is dropped `margin` earlier.
    pub(crate) fn of_term(
        fencing_token: u64,
        reason: TermEndReason,
        lease_until: LocalInstant,
        margin: Duration,
    ) -> Self {
        Self { term: Some((fencing_token, reason)), stage: Stage::Stopping { margin }, until: lease_until - margin }
    }

    /// Begins the release after a candidacy without a term. The release is given up at `give_up_at`.
    pub(crate) fn of_candidacy(give_up_at: LocalInstant) -> Self {
        Self { term: None, stage: Stage::Releasing, until: give_up_at }
    }

    /// Begins the end of a term whose session ends, too.
    pub(crate) fn of_session(fencing_token: u64, reason: TermEndReason) -> Self {
        Self { term: Some((fencing_token, reason)), stage: Stage::OfSession, until: LocalInstant::default() }
    }

    /// The reason for the end of the term; `None` if no term had started.
    pub(crate) fn reason(&self) -> Option<&TermEndReason> {
        self.term.as_ref().map(|(_, reason)| reason)
    }

    /// The moment at which [`pass`](Self::pass) has to be called; `None` if the session ends.
    pub(crate) fn deadline(&self) -> Option<LocalInstant> {
        (!self.is_of_session()).then_some(self.until)
    }

    /// The moment at which work that has not stopped is dropped, for a term that has just ended.
    pub(crate) fn drop_by(&self) -> LocalInstant {
        self.until
    }

    /// Shows the deadline to an explorer, which may replace it.
    pub(crate) fn visit(&mut self, timer: impl FnOnce(&mut LocalInstant)) {
        if !self.is_of_session() {
            timer(&mut self.until);
        }
    }

    /// Returns `true` while the lock is to be released, because the work has ended.
    pub(crate) fn is_releasing(&self) -> bool {
        self.stage == Stage::Releasing
    }

    /// Returns `true` while the work may still run, unless the session waits for it.
    pub(crate) fn awaits_work(&self) -> bool {
        matches!(self.stage, Stage::Stopping { .. } | Stage::Dropped)
    }

    /// Returns `true` if the rest is left to the end of the session.
    pub(crate) fn is_of_session(&self) -> bool {
        self.stage == Stage::OfSession
    }

    /// Begins the release, because the work has ended. The release is given up when the lease has expired.
    pub(crate) fn release(&mut self, lease_until: LocalInstant) {
        (self.stage, self.until) = (Stage::Releasing, lease_until);
    }

    /// Gives up the release at `give_up_at`, if that is earlier. If the store is unavailable, a process that should
    /// exit must not wait until a long lease has expired.
    pub(crate) fn shorten_deadline(&mut self, give_up_at: LocalInstant) {
        if self.is_releasing() {
            self.until = self.until.min(give_up_at);
        }
    }

    /// Leaves the work and the release to the end of the session.
    pub(crate) fn leave_to_session(&mut self) {
        (self.stage, self.until) = (Stage::OfSession, LocalInstant::default());
    }

    /// Returns the timeout of the stage if its deadline has passed. If work is late, the stage becomes `Dropped`.
    pub(crate) fn pass(&mut self, now: LocalInstant) -> Option<Timeout> {
        if now < self.deadline()? {
            return None;
        }
        match self.stage {
            Stage::Stopping { margin } => {
                // A drop takes a moment. The margin counts from now, because `until` may be long past after a suspend.
                (self.stage, self.until) = (Stage::Dropped, now + margin);
                Some(Timeout::Work)
            }
            Stage::Dropped => Some(Timeout::DroppedWork),
            Stage::Releasing => Some(Timeout::Release),
            Stage::OfSession => None,
        }
    }

    /// The outcome for the caller; `None` if the candidate competes again: see [`RunOutcome::of`].
    pub(crate) fn outcome(self, work: Option<WorkEnd>, stops: bool) -> Option<RunOutcome> {
        RunOutcome::of(self.term, work, stops)
    }
}
