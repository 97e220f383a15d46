//! Rules 8 and 9: the end of a term. Leadership ends first, then the work, then the lease.

use std::time::Duration;

use super::outcome::RunOutcome;
use super::reason::TermEndReason;
use super::work::WorkEnd;
use crate::clock::LocalInstant;

/// A term whose leadership has ended, while its work or its lease is left.
///
/// ```text
///   leadership ended             the work ended
///  ------------------> Stopping -----------------> Releasing -----> over: released, not own any more, or given up
///                         | drop_by                    ^
///                         v           the work ended   |
///                      Dropped ------------------------+
///                         | a margin later
///                         +-----> over: the work is given up, and the lease stays
/// ```
///
/// A candidacy whose write may have won begins with the release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ending {
    /// The token of the term, and the reason for its end; `None` if no term had started.
    term: Option<(u64, TermEndReason)>,
    stage: Stage,
    /// The moment at which time alone ends the stage.
    until: LocalInstant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The work may still be winding down. If it is dropped, it has `margin` to be gone.
    Stopping { margin: Duration },
    /// The work was dropped, and is not known to be gone.
    Dropped,
    /// The work is over, and the lease is being released.
    Releasing,
    /// The end of a session ends all that is left.
    OfSession,
}

/// A part of an ending that has taken longer than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    /// The work, which has to be dropped.
    Work,
    /// The dropped work, which cannot be dropped and is given up. Nothing is left of the ending.
    DroppedWork,
    /// The release, which is given up. Nothing is left of the ending.
    Release,
}

impl Ending {
    /// Begins the end of a term. `lease_until` is the first moment at which another candidate may take the lease, and
    /// `margin` the end of a lease that is kept clear of the work.
    pub(crate) fn of_term(
        fencing_token: u64,
        reason: TermEndReason,
        lease_until: LocalInstant,
        margin: Duration,
    ) -> Self {
        Self { term: Some((fencing_token, reason)), stage: Stage::Stopping { margin }, until: lease_until - margin }
    }

    /// Begins the release of a lease without a term, which is given up at this moment.
    pub(crate) fn of_candidacy(give_up_at: LocalInstant) -> Self {
        Self { term: None, stage: Stage::Releasing, until: give_up_at }
    }

    /// Begins the end of a term that is over together with its session, which waits for the work and frees the lease.
    pub(crate) fn of_session(fencing_token: u64, reason: TermEndReason) -> Self {
        Self { term: Some((fencing_token, reason)), stage: Stage::OfSession, until: LocalInstant::default() }
    }

    /// The reason for the end of the term; `None` if no term had started.
    pub(crate) fn reason(&self) -> Option<&TermEndReason> {
        self.term.as_ref().map(|(_, reason)| reason)
    }

    /// The moment at which time alone changes something; `None` if that is for a session to say.
    pub(crate) fn deadline(&self) -> Option<LocalInstant> {
        (!self.is_of_session()).then_some(self.until)
    }

    /// The moment by which work that was told to stop must have stopped.
    pub(crate) fn drop_by(&self) -> LocalInstant {
        self.until
    }

    /// Shows the deadline to an explorer, which may replace it.
    pub(crate) fn visit(&mut self, timer: impl FnOnce(&mut LocalInstant)) {
        if !self.is_of_session() {
            timer(&mut self.until);
        }
    }

    /// Returns `true` while the lease may be released: the work is over.
    pub(crate) fn is_release(&self) -> bool {
        self.stage == Stage::Releasing
    }

    /// Returns `true` while the work of the term may run.
    pub(crate) fn awaits_work(&self) -> bool {
        matches!(self.stage, Stage::Stopping { .. } | Stage::Dropped)
    }

    /// Returns `true` if the end of a session is what the caller waits for.
    pub(crate) fn is_of_session(&self) -> bool {
        self.stage == Stage::OfSession
    }

    /// Begins the release, because the work has ended. The release is given up when the lease has expired.
    pub(crate) fn release(&mut self, lease_until: LocalInstant) {
        (self.stage, self.until) = (Stage::Releasing, lease_until);
    }

    /// Gives a release up at this moment if that is earlier: a process that is to end must not wait for a store that is
    /// away until a long lease has expired.
    pub(crate) fn shorten_deadline(&mut self, give_up_at: LocalInstant) {
        if self.is_release() {
            self.until = self.until.min(give_up_at);
        }
    }

    /// Leaves work and lease to the end of the session.
    pub(crate) fn leave_to_session(&mut self) {
        (self.stage, self.until) = (Stage::OfSession, LocalInstant::default());
    }

    /// Takes the time, and returns what is late.
    pub(crate) fn pass(&mut self, now: LocalInstant) -> Option<Timeout> {
        if now < self.deadline()? {
            return None;
        }
        match self.stage {
            Stage::Stopping { margin } => {
                // The work takes a moment to be dropped, counted from now: after a suspend, `until` is long past.
                (self.stage, self.until) = (Stage::Dropped, now + margin);
                Some(Timeout::Work)
            }
            Stage::Dropped => Some(Timeout::DroppedWork),
            Stage::Releasing => Some(Timeout::Release),
            Stage::OfSession => None,
        }
    }

    /// The outcome for the caller. `None` if the term was over before its work could begin, so that the candidate competes
    /// again (rule 12), unless it `stops`.
    pub(crate) fn outcome(self, work: Option<WorkEnd>, stops: bool) -> Option<RunOutcome> {
        RunOutcome::of(self.term, work, stops)
    }
}
