//! The end of a term's work, and what it means for the term.

use super::reason::TermEndReason;

/// The way in which a term's work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkEnd {
    /// The work was never polled, because the term was over before.
    NotBegun,
    /// The work is complete, or the term had no work.
    Complete,
    /// The work is complete and has failed, so its term ends (rule 21), and its job is not done (rule 18).
    Failed,
    /// The work panicked.
    Panicked,
    /// The work was dropped.
    Dropped,
}

impl WorkEnd {
    /// The reason for which such an end of the work ends a term that is valid; `None` if the term goes on.
    /// `ends_with_work` is `true` if the term is for this work alone.
    pub(crate) fn ends_term(self, ends_with_work: bool) -> Option<TermEndReason> {
        match self {
            Self::Panicked => Some(TermEndReason::WorkPanicked),
            Self::Failed => Some(TermEndReason::WorkFailed),
            Self::Complete if ends_with_work => Some(TermEndReason::WorkFinished),
            // The work's task found the window over, because of time or of a command. The command follows as an input.
            Self::NotBegun => Some(TermEndReason::RenewDeadline),
            // A leader whose work is complete leads on, as in client-go. Work is dropped only after the end of its term.
            Self::Complete | Self::Dropped => None,
        }
    }
}
