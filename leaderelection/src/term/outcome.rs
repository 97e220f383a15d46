//! The outcome of a candidacy.

use super::reason::TermEndReason;
use super::token::FencingToken;
use super::work::WorkEnd;

/// The outcome of a candidacy, as [`Elector::run`](crate::Elector::run) returns it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunOutcome {
    /// The candidacy was stopped before it had led.
    NeverLed,
    /// The candidate led a term, which is over.
    Led {
        /// The term's token.
        fencing_token: FencingToken,
        /// The reason for the end of the term.
        reason: TermEndReason,
    },
    /// The job of the candidacy has succeeded, and its mark is in the record (rule 18).
    JobDone {
        /// The token of the term in which this candidate did the job; `None` if the candidate found the job done.
        fencing_token: Option<FencingToken>,
    },
}

impl RunOutcome {
    /// The outcome of a candidacy whose `term` is over. `None` means that the candidate competes again, because the
    /// renew deadline passed before the work could begin (rule 12). With `stops`, it is `NeverLed` instead.
    pub(crate) fn of(term: Option<(u64, TermEndReason)>, work: Option<WorkEnd>, stops: bool) -> Option<Self> {
        match term {
            Some((_, TermEndReason::RenewDeadline)) if work == Some(WorkEnd::NotBegun) => {
                stops.then_some(Self::NeverLed)
            }
            Some((token, reason)) => Some(Self::Led { fencing_token: token.into(), reason }),
            None => Some(Self::NeverLed),
        }
    }

    /// The token of the term; `None` if the candidate never led.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        match self {
            Self::NeverLed => None,
            Self::Led { fencing_token, .. } => Some(*fencing_token),
            Self::JobDone { fencing_token } => *fencing_token,
        }
    }

    /// Why the term ended; `None` if the candidate never led.
    #[must_use]
    pub fn reason(&self) -> Option<&TermEndReason> {
        match self {
            Self::NeverLed | Self::JobDone { fencing_token: None } => None,
            Self::Led { reason, .. } => Some(reason),
            Self::JobDone { .. } => Some(&TermEndReason::WorkFinished),
        }
    }
}
