//! The last changes of leadership, and the reasons for them.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::election::{BeginReason, EndReason};

/// The number of transitions that a [`LeaderHandle`](crate::LeaderHandle) remembers.
pub const REMEMBERED_TRANSITIONS: usize = 16;

/// A change of leadership, as this process saw the change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transition {
    /// The time at which this process saw the change, by its wall clock.
    pub at: DateTime<Utc>,
    /// The change.
    pub change: Change,
}

/// A change, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// This elector began to lead.
    StartedLeading {
        /// The new term's token.
        fencing_token: u64,
        /// The reason for which the lease was free.
        reason: BeginReason,
    },
    /// This elector stopped leading.
    StoppedLeading {
        /// The ended term's token.
        fencing_token: u64,
        /// The reason for the end of the term.
        reason: EndReason,
    },
    /// The lock names another leader.
    LeaderChanged {
        /// The leader that the lock named before.
        from: Option<String>,
        /// The leader that the lock names now.
        to: Option<String>,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartedLeading { fencing_token, reason } => {
                write!(f, "started leading with fencing token {fencing_token}: {reason}")
            }
            Self::StoppedLeading { fencing_token, reason } => {
                write!(f, "stopped leading with fencing token {fencing_token}: {reason}")
            }
            Self::LeaderChanged { from: None, to: None } => f.write_str("nobody leads"),
            Self::LeaderChanged { from: None, to: Some(to) } => write!(f, "{to:?} leads"),
            Self::LeaderChanged { from: Some(from), to: None } => write!(f, "{from:?} does not lead any more"),
            Self::LeaderChanged { from: Some(from), to: Some(to) } => write!(f, "{to:?} leads after {from:?}"),
        }
    }
}

/// A [`Change`] as a status keeps it, which shares the names of leaders.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    StartedLeading { fencing_token: u64, reason: BeginReason },
    StoppedLeading { fencing_token: u64, reason: EndReason },
    LeaderChanged { from: Option<Arc<str>>, to: Option<Arc<str>> },
}

impl From<Kept> for Change {
    fn from(kept: Kept) -> Self {
        let owned = |name: Option<Arc<str>>| name.as_deref().map(str::to_owned);
        match kept {
            Kept::StartedLeading { fencing_token, reason } => Self::StartedLeading { fencing_token, reason },
            Kept::StoppedLeading { fencing_token, reason } => Self::StoppedLeading { fencing_token, reason },
            Kept::LeaderChanged { from, to } => Self::LeaderChanged { from: owned(from), to: owned(to) },
        }
    }
}

/// The last transitions, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(Vec<(DateTime<Utc>, Kept)>);

impl History {
    pub(crate) fn record(&mut self, at: DateTime<Utc>, change: Kept) {
        if self.0.len() == REMEMBERED_TRANSITIONS {
            self.0.remove(0);
        }
        // Most locks change their leaders rarely, and a process may have thousands of locks.
        self.0.reserve_exact(1);
        self.0.push((at, change));
    }

    pub(crate) fn to_vec(&self) -> Vec<Transition> {
        self.0.iter().cloned().map(|(at, change)| Transition { at, change: change.into() }).collect()
    }
}
