//! The state of a lock in one word.

use serde::Serialize;

use crate::lock::view::{State, View};
use crate::survey::doubt::Doubt;
use crate::survey::observe::Age;

/// The state of a lock, as far as the looks so far show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Standing {
    /// The lease has a holder, and a renewal was seen.
    Alive,
    /// The lease has a holder. No renewal was seen, and the lease was not watched for its whole duration.
    Held,
    /// As [`Held`](Self::Held), and by the clocks of the holder and of this machine, the last renewal is older than
    /// the lease. The store does not tell its age.
    Doubtful,
    /// The lease was seen without a renewal for its whole duration, or is older than that by the store's clock.
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
    /// `doubt` is the sign that the holder is dead, if no renewal was seen.
    pub(super) fn of(view: &View, age: Option<&Age>, doubt: Option<Doubt>) -> Self {
        match view.state {
            State::Free => Self::Free,
            State::Absent => Self::Absent,
            State::Unreadable => Self::Unreadable,
            State::Unreachable => Self::Unreachable,
            State::Held if age.is_some_and(|age| age.expired) || matches!(doubt, Some(Doubt::ByStore(_))) => {
                Self::Expired
            }
            State::Held if view.preferred_holder.is_some() => Self::HandingOver,
            State::Held if age.is_some_and(|age| age.left.is_some()) => Self::Alive,
            State::Held if doubt.is_some() => Self::Doubtful,
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
