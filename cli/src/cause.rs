//! The texts for what is wrong with a lock or its store. Every view says the same, and decides it by the kind of an
//! error.

use std::fmt::{self, Display};
use std::time::Duration;

use leaderelection::StoreErrorKind;
#[cfg(unix)]
use leaderelection::TermEndReason;
use leaderelection::handle::{Change, LastError, Loss, Transition};

/// The lateness from which on a leader that has noticed its deadline is said to have stood still. Timers of a process that
/// runs are late by milliseconds.
const STANDSTILL: Duration = Duration::from_secs(1);

/// A fault of a lock or its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The store gave no answer so far, or has no object.
    NotYet,
    /// The store gave no answer, or none that tells the outcome.
    Silent,
    /// The store did nothing, and may do it later: throttled, full, or out of reach.
    NotNow,
    /// The store rejects requests until a person changes something.
    Refuses,
    /// The object at the lock's key is something else.
    NotARecord,
}

impl Cause {
    pub(crate) fn of(kind: StoreErrorKind) -> Self {
        match kind {
            StoreErrorKind::Fatal => Self::Refuses,
            StoreErrorKind::Unreadable => Self::NotARecord,
            StoreErrorKind::Rejected | StoreErrorKind::Conflict => Self::NotNow,
            _ => Self::Silent,
        }
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotYet => "the store has not answered yet, or has no lock yet",
            Self::Silent => "the store gives no usable answer",
            Self::NotNow => "the store is unavailable",
            Self::Refuses => "the store rejects requests",
            Self::NotARecord => "the object is not a record",
        })
    }
}

/// The text of an error, which begins with its cause.
pub(crate) fn of_error(error: &LastError) -> String {
    format!("{}: {}", Cause::of(error.kind), error.message)
}

/// The text of a change of leadership, with the cause as far as it is known.
pub(crate) fn of_change(transition: &Transition) -> String {
    match (&transition.change, end_of_term(transition)) {
        (Change::StoppedLeading { fencing_token, .. }, Some(end)) => {
            format!("stopped leading with fencing token {fencing_token}: {end}")
        }
        (change, _) => change.to_string(),
    }
}

/// The reason for the end of a term of its own, with the cause as far as it is known; `None` for any other change.
pub(crate) fn end_of_term(transition: &Transition) -> Option<String> {
    let Change::StoppedLeading { reason, .. } = &transition.change else { return None };
    Some(match &transition.loss {
        Some(Loss { noticed_after, .. }) if *noticed_after >= STANDSTILL => {
            let late = humantime::format_duration(Duration::from_secs(noticed_after.as_secs()));
            format!(
                "{reason}: this process stood still, and noticed the deadline {late} late; check for a suspended process, a paused machine or a lack of CPU time"
            )
        }
        Some(Loss { error: Some(error), .. }) => format!("{reason}: {}", of_error(error)),
        _ => reason.to_string(),
    })
}

/// The next step after a term of its own that ended for this reason; `None` if the reason or the error behind it says what
/// to do.
#[cfg(unix)]
pub(crate) fn advice(reason: &TermEndReason, identity: &str) -> Option<&'static str> {
    Some(match reason {
        TermEndReason::TakenOver { by } if by == identity => {
            "another process has the same identity: give every process its own --identity"
        }
        TermEndReason::TakenOver { .. } => {
            "the lease had not expired: check whether somebody forced a release, or restored or copied the lock's object"
        }
        TermEndReason::Emptied => "check whether somebody ran `leaderelect release --force`",
        TermEndReason::Deleted => "check who deletes objects there, and which lifecycle rules expire them",
        TermEndReason::Unreadable => "nobody can lead: check what else writes to this key",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_words() {
        let words = |kind| Cause::of(kind).to_string();
        assert_eq!(words(StoreErrorKind::Ambiguous), "the store gives no usable answer");
        assert_eq!(words(StoreErrorKind::Rejected), "the store is unavailable");
        assert_eq!(words(StoreErrorKind::Fatal), "the store rejects requests");
        assert_eq!(words(StoreErrorKind::Unreadable), "the object is not a record");
    }
}
