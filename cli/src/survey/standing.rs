//! The state of a lock in one word.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::observe::Age;
use crate::view::{State, View};

/// The state of a lock, as far as the looks so far show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Standing {
    /// The lease has a holder, and a renewal was seen.
    Alive,
    /// The lease has a holder. No renewal was seen, and the lease was not watched for its whole duration.
    Held,
    /// As [`Held`](Self::Held), and by the clocks of the holder and of this machine, the last renewal is older than
    /// the lease.
    Doubtful,
    /// The lease was seen without a renewal for its whole duration.
    Expired,
    /// The holder is asked to hand over.
    HandingOver,
    /// The lease has no holder.
    Free,
    /// The object does not exist.
    Absent,
    /// The object is not a record.
    Unreadable,
    /// The object cannot be read.
    Unreachable,
}

impl Standing {
    pub(super) fn of(view: &View, age: Option<&Age>, now: DateTime<Utc>) -> Self {
        match view.state {
            State::Free => Self::Free,
            State::Absent => Self::Absent,
            State::Unreadable => Self::Unreadable,
            State::Unreachable => Self::Unreachable,
            State::Held if age.is_some_and(|age| age.expired) => Self::Expired,
            State::Held if view.preferred_holder.is_some() => Self::HandingOver,
            State::Held if age.is_some_and(|age| age.left.is_some()) => Self::Alive,
            State::Held if is_old(view, now) => Self::Doubtful,
            State::Held => Self::Held,
        }
    }

    /// The word for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Held => "held",
            Self::Doubtful => "stale?",
            Self::Expired => "expired",
            Self::HandingOver => "handing over",
            Self::Free => "free",
            Self::Absent => "gone",
            Self::Unreadable => "not a record",
            Self::Unreachable => "cannot be read",
        }
    }
}

/// Returns `true` if the last renewal is older than the lease, as far as the clocks agree.
fn is_old(view: &View, now: DateTime<Utc>) -> bool {
    let age = view.renewed().map(|renewed| (now - renewed).to_std().unwrap_or(Duration::ZERO));
    age.zip(view.lease()).is_some_and(|(age, lease)| age > lease)
}
