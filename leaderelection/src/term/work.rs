//! How a term's work ends, and whether the term then ends, too.

use super::reason::TermEndReason;

/// How a term's work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkEnd {
    /// The work was never polled, because the term was over before that.
    NotBegun,
    /// The work has succeeded, or the term had no work.
    Complete,
    /// The work has returned an error, so its term ends (rule 21), and its job is not done (rule 18).
    Failed,
    /// The work panicked.
    Panicked,
    /// The work was dropped.
    Dropped,
}

impl WorkEnd {
    /// Why the end of the work ends a term that is still valid; `None` if the term continues. With `ends_with_work`,
    /// complete work ends its term, as in `run_while_leading`.
    pub(crate) fn ends_term(self, ends_with_work: bool) -> Option<TermEndReason> {
        match self {
            Self::Panicked => Some(TermEndReason::WorkPanicked),
            Self::Failed => Some(TermEndReason::WorkFailed),
            Self::Complete if ends_with_work => Some(TermEndReason::WorkFinished),
            // The task found the window closed. If a command closed it, the command came first, and ended the term.
            Self::NotBegun => Some(TermEndReason::RenewDeadline),
            // Complete work does not end leadership, as in client-go. Work is dropped only after its term has ended.
            Self::Complete | Self::Dropped => None,
        }
    }
}
