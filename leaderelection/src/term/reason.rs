//! Why terms begin and end.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::lock::record::LeaderElectionRecord;

/// Why a term could begin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BeginReason {
    /// No object existed.
    Created,
    /// The lease had no holder.
    Released,
    /// The lease was handed over to this candidate.
    Transferred,
    /// The holder did not renew its lease.
    Expired {
        /// The holder whose lease expired.
        of: String,
    },
    /// The record named this candidate's identity as the holder, and
    /// [`reclaim_own_identity`](crate::LeaderElectionConfigBuilder::reclaim_own_identity) is set.
    Reclaimed,
}

impl fmt::Display for BeginReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("the lock was new"),
            Self::Released => f.write_str("the lease was free"),
            Self::Transferred => f.write_str("the lease was handed over to us"),
            Self::Expired { of } => write!(f, "the lease of {of:?} expired"),
            Self::Reclaimed => f.write_str("the lease bore our own identity"),
        }
    }
}

/// Why a term ended. In JSON, `why` is the [`name`](Self::name) of the reason, and `next` is the candidate that leads
/// next, if the reason names one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TermEndReason {
    /// The caller asked to stop.
    Cancelled,
    /// [`LeaderHandle::step_down`](crate::LeaderHandle::step_down) was called.
    SteppedDown,
    /// The lease was handed over to another candidate: with
    /// [`LeaderHandle::transfer_to`](crate::LeaderHandle::transfer_to), by an operator's
    /// [request](crate::admin::request_transfer), for fail-back, or to balance the locks of sessions.
    Transferred {
        /// The candidate that is to lead next.
        #[serde(rename = "next")]
        to: String,
    },
    /// The lease could not be renewed before the renew deadline.
    RenewDeadline,
    /// The record names another holder.
    TakenOver {
        /// The new holder.
        #[serde(rename = "next")]
        by: String,
    },
    /// Somebody else released the lease, e.g. an operator.
    Emptied,
    /// The object was deleted.
    Deleted,
    /// The object no longer holds a record.
    Unreadable,
    /// The leader's future panicked.
    WorkPanicked,
    /// The leader's future returned an error: see [`WorkOutcome`](crate::config::WorkOutcome).
    WorkFailed,
    /// The work of `run_while_leading` or `run_once` is complete.
    WorkFinished,
    /// Recorded by another process: the leader released the lease, for an unknown reason.
    Released,
    /// Recorded by another process: the lease expired, and the leader has reported no reason.
    Expired {
        /// The candidate that has taken over, if one has.
        #[serde(rename = "next", default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A reason that only a later version of this library knows, read from a history.
    #[serde(untagged)]
    Other {
        /// The name of the reason.
        #[serde(rename = "why")]
        name: String,
        /// The candidate that leads next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    },
}

impl TermEndReason {
    /// The [`name`](Self::name)s of all reasons for which an elector ends its own term.
    #[cfg(feature = "metrics")]
    pub(crate) const OF_TERMS: &[&str] = &[
        "cancelled",
        "stepped_down",
        "transferred",
        "renew_deadline",
        "taken_over",
        "emptied",
        "deleted",
        "unreadable",
        "work_panicked",
        "work_failed",
        "work_finished",
    ];

    /// Why a leader lost the lease, if it has found this record instead of its own; `None` means no object.
    pub(crate) fn of_loss(found: Option<&LeaderElectionRecord>) -> Self {
        match found {
            None => Self::Deleted,
            Some(record) if record.is_released() => Self::Emptied,
            Some(record) => Self::TakenOver { by: record.holder_identity.clone() },
        }
    }

    /// Returns `true` if a lease that is still held is released after a term that ended for this reason.
    ///
    /// After a step-down, a transfer, and failed or finished work, it is always released. After any other reason, it is
    /// released only with [`release_on_cancel`](crate::LeaderElectionConfigBuilder::release_on_cancel).
    #[must_use]
    pub fn releases(&self, release_on_cancel: bool) -> bool {
        release_on_cancel
            || matches!(self, Self::SteppedDown | Self::Transferred { .. } | Self::WorkFailed | Self::WorkFinished)
    }

    /// Returns `true` if this candidate lets others go first after a term that ended for this reason: see
    /// [`step_down_cool_down`](crate::LeaderElectionConfigBuilder::step_down_cool_down).
    #[must_use]
    pub fn cools_down(&self) -> bool {
        matches!(self, Self::SteppedDown | Self::WorkPanicked | Self::WorkFailed)
    }

    /// Returns `true` if the leader ended its term on purpose, and not because of failed work.
    #[must_use]
    pub fn is_on_purpose(&self) -> bool {
        use TermEndReason::{Cancelled, Released, SteppedDown, Transferred, WorkFinished};

        matches!(self, Cancelled | SteppedDown | Transferred { .. } | WorkFinished | Released)
    }

    /// Returns a short name such as `renew_deadline`, without details, for metric labels and for programs.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Cancelled => "cancelled",
            Self::SteppedDown => "stepped_down",
            Self::Transferred { .. } => "transferred",
            Self::RenewDeadline => "renew_deadline",
            Self::TakenOver { .. } => "taken_over",
            Self::Emptied => "emptied",
            Self::Deleted => "deleted",
            Self::Unreadable => "unreadable",
            Self::WorkPanicked => "work_panicked",
            Self::WorkFailed => "work_failed",
            Self::WorkFinished => "work_finished",
            Self::Released => "released",
            Self::Expired { .. } => "expired",
            Self::Other { name, .. } => name,
        }
    }
}

impl fmt::Display for TermEndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the candidate was told to stop"),
            Self::SteppedDown => f.write_str("stepped down"),
            Self::Transferred { to } => write!(f, "the lease is handed over to {to:?}"),
            Self::RenewDeadline => f.write_str("the lease could not be renewed before the renew deadline"),
            Self::TakenOver { by } => write!(f, "the lease was taken over by {by:?}"),
            Self::Emptied => f.write_str("the lease was released by somebody else"),
            Self::Deleted => f.write_str("the lock's object was deleted"),
            Self::Unreadable => f.write_str("the lock's object was replaced by something that is not a record"),
            Self::WorkPanicked => f.write_str("the leader's work panicked"),
            Self::WorkFailed => f.write_str("the leader's work failed"),
            Self::WorkFinished => f.write_str("the leader's work is complete"),
            Self::Released => f.write_str("the lease was released"),
            Self::Expired { by: None } => f.write_str("the lease expired"),
            Self::Expired { by: Some(by) } => write!(f, "the lease expired, and was taken over by {by:?}"),
            Self::Other { name, .. } => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_survives_json_even_if_only_a_later_version_knows_it() {
        for (json, reason) in [
            (r#"{"why":"work_failed"}"#, TermEndReason::WorkFailed),
            (r#"{"why":"transferred","next":"b"}"#, TermEndReason::Transferred { to: "b".to_owned() }),
            (r#"{"why":"taken_over","next":"b"}"#, TermEndReason::TakenOver { by: "b".to_owned() }),
            (r#"{"why":"expired","next":"b"}"#, TermEndReason::Expired { by: Some("b".to_owned()) }),
            (
                r#"{"why":"moved_on","next":"b"}"#,
                TermEndReason::Other { name: "moved_on".to_owned(), next: Some("b".to_owned()) },
            ),
        ] {
            assert_eq!(serde_json::from_str::<TermEndReason>(json).unwrap(), reason);
            assert_eq!(serde_json::to_string(&reason).unwrap(), json);
            assert_eq!(serde_json::to_value(&reason).unwrap()["why"], reason.name());
        }
    }
}
