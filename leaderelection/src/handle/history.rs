//! The last changes of leadership and their reasons, as a handle shows them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::election::{BeginReason, TermEndReason};
use crate::handle::observation::LastError;
use crate::term::FencingToken;

/// The number of transitions that a [`LeaderHandle`](crate::LeaderHandle) remembers.
pub const REMEMBERED_TRANSITIONS: usize = 16;

/// A change of leadership that this process has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transition {
    /// The time at which this process saw the change, by its wall clock. If a term of this process passed its renew
    /// deadline, this is the time of the deadline, even if the process was frozen and noticed later.
    pub at: DateTime<Utc>,
    /// The change.
    pub change: Change,
    /// The cause, if a term of this process ended because of [`TermEndReason::RenewDeadline`].
    pub loss: Option<Loss>,
}

/// Why a leader did not renew its lease before the renew deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The time from the deadline until this process noticed. A second or more means that the process was frozen: it
    /// was stopped, starved of processor time, or on a machine that was suspended.
    pub noticed_after: Duration,
    /// The last error since the last successful renewal was sent; `None` if no request has failed since then.
    pub error: Option<LastError>,
}

/// A change, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// This elector began to lead.
    StartedLeading {
        /// The new term's token.
        fencing_token: FencingToken,
        /// Why the elector could take the lease.
        reason: BeginReason,
    },
    /// This elector stopped leading.
    StoppedLeading {
        /// The ended term's token.
        fencing_token: FencingToken,
        /// The reason for the end of the term.
        reason: TermEndReason,
    },
    /// The lock names another leader.
    LeaderChanged {
        /// The leader that the lock named before; `None` if it named nobody.
        from: Option<String>,
        /// The leader that the lock names now; `None` if it names nobody.
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

/// A [`Transition`] as a status keeps it. To save memory, entries share the names of leaders.
#[derive(Clone, Debug)]
pub(crate) enum HistoryEntry {
    StartedLeading {
        fencing_token: FencingToken,
        reason: BeginReason,
    },
    /// Boxed to keep the other entries small: a process may lead thousands of locks, and few of their terms have ended.
    StoppedLeading(Box<Stopped>),
    LeaderChanged {
        from: Option<Arc<str>>,
        to: Option<Arc<str>>,
    },
}

impl HistoryEntry {
    fn into_transition(self, at: DateTime<Utc>) -> Transition {
        let owned = |name: Option<Arc<str>>| name.as_deref().map(str::to_owned);
        let (change, loss) = match self {
            Self::StartedLeading { fencing_token, reason } => (Change::StartedLeading { fencing_token, reason }, None),
            Self::StoppedLeading(stopped) => {
                let Stopped { fencing_token, reason, loss } = *stopped;
                (Change::StoppedLeading { fencing_token, reason }, loss)
            }
            Self::LeaderChanged { from, to } => (Change::LeaderChanged { from: owned(from), to: owned(to) }, None),
        };
        Transition { at, change, loss }
    }
}

/// The end of a term of this process.
#[derive(Clone, Debug)]
pub(crate) struct Stopped {
    pub(crate) fencing_token: FencingToken,
    pub(crate) reason: TermEndReason,
    pub(crate) loss: Option<Loss>,
}

/// The last transitions, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(Vec<(DateTime<Utc>, HistoryEntry)>);

impl History {
    pub(crate) fn record(&mut self, at: DateTime<Utc>, change: HistoryEntry) {
        if self.0.len() == REMEMBERED_TRANSITIONS {
            self.0.remove(0);
        }
        // Otherwise the vector would reserve four entries, and most of a process's thousands of locks need only one.
        self.0.reserve_exact(1);
        self.0.push((at, change));
    }

    pub(crate) fn to_vec(&self) -> Vec<Transition> {
        self.0.iter().cloned().map(|(at, entry)| entry.into_transition(at)).collect()
    }
}
