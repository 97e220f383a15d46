//! The reasons for which terms begin and end.

use std::fmt;

use crate::lock::record::LeaderElectionRecord;

/// The reason for which a term could begin.
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
    /// The lease was held under this candidate's identity, and
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

/// The reason for which a term ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The caller asked to stop.
    Cancelled,
    /// [`LeaderHandle::step_down`](crate::LeaderHandle::step_down) was called.
    SteppedDown,
    /// The lease was handed over to another candidate, by
    /// [`LeaderHandle::transfer_to`](crate::LeaderHandle::transfer_to) or by an operator's
    /// [request](crate::admin::request_transfer).
    Transferred {
        /// The candidate that is to lead next.
        to: String,
    },
    /// The lease could not be renewed before the renew deadline.
    RenewDeadline,
    /// The record names another holder.
    TakenOver {
        /// The new holder.
        by: String,
    },
    /// Another process released the lease.
    Emptied,
    /// The object was deleted.
    Deleted,
    /// The object no longer holds a record.
    Unreadable,
    /// The leader's future panicked.
    WorkPanicked,
    /// The leader's future returned an error: see [`WorkOutcome`](crate::config::WorkOutcome).
    WorkFailed,
    /// The leader's future of `run_while_leading` is complete.
    WorkFinished,
}

impl EndReason {
    /// The [`name`](Self::name)s of all reasons for which a term ends.
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

    /// The reason for which a leader ends its term that finds this object, or none, in place of its own record.
    pub(crate) fn of_loss(found: Option<&LeaderElectionRecord>) -> Self {
        match found {
            None => Self::Deleted,
            Some(record) if record.is_released() => Self::Emptied,
            Some(record) => Self::TakenOver { by: record.holder_identity.clone() },
        }
    }

    /// Returns `true` if the lease is released after a term that ended for this reason.
    ///
    /// The lease of a term that ended on purpose is always released. The lease of any other term is released only with
    /// [`release_on_cancel`](crate::LeaderElectionConfigBuilder::release_on_cancel).
    #[must_use]
    pub fn releases(&self, release_on_cancel: bool) -> bool {
        release_on_cancel
            || matches!(self, Self::SteppedDown | Self::Transferred { .. } | Self::WorkFailed | Self::WorkFinished)
    }

    /// Returns `true` if other candidates go first after a term that ended for this reason: see
    /// [`step_down_cool_down`](crate::LeaderElectionConfigBuilder::step_down_cool_down).
    #[must_use]
    pub fn cools_down(&self) -> bool {
        matches!(self, Self::SteppedDown | Self::WorkPanicked | Self::WorkFailed)
    }

    /// Returns the name of the reason without details, for the labels of metrics and for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
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
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("cancelled by the caller"),
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
        }
    }
}
