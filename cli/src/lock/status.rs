//! The status of a lock, which all commands tell in the same words.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::ser::{SerializeStruct as _, Serializer};

use super::text::as_seconds;

use crate::cause::Cause;

/// The resolution of the ages that HTTP stores report.
const GRAIN: Duration = Duration::from_secs(1);

/// The age of a lease, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Age {
    /// The time since the first read.
    #[serde(serialize_with = "as_seconds", rename = "watchedForSeconds")]
    pub(crate) watched_for: Option<Duration>,
    /// The time for which the lease is known to be unchanged.
    #[serde(serialize_with = "as_seconds", rename = "unchangedForSeconds")]
    pub(crate) unchanged_for: Duration,
    /// The time until any candidate may take the lease, unless the holder renews it; `null` if it is not known, because no
    /// renewal was observed.
    #[serde(serialize_with = "as_seconds", rename = "leftSeconds")]
    pub(crate) left: Option<Duration>,
    /// The lease was observed without a renewal for its whole duration, or is older by the store's clock.
    pub(crate) expired: bool,
    /// A renewal was observed.
    #[serde(skip)]
    pub(crate) renewed: bool,
}

impl Age {
    /// The age of a lease of this duration, which an earlier read may have shown in another state.
    pub(crate) fn new(
        watched_for: Option<Duration>,
        unchanged_for: Duration,
        lease: Duration,
        was_seen_to_change: bool,
    ) -> Self {
        let left = lease.saturating_sub(unchanged_for);
        let (expired, renewed) = (left.is_zero(), was_seen_to_change && !left.is_zero());
        Self { watched_for, unchanged_for, left: (expired || renewed).then_some(left), expired, renewed }
    }

    /// The same of a lease that is over, as the store says.
    pub(crate) fn over(self) -> Self {
        Self { left: Some(Duration::ZERO), expired: true, ..self }
    }
}

/// The status of a lock, as far as the polls of this process show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LockStatus {
    /// The lease has a holder, and a renewal was seen.
    Led,
    /// The lease has a holder. No renewal was seen, and the lease was not watched for its whole duration.
    Held,
    /// The holder is asked to hand over.
    HandingOver,
    /// As [`Held`](Self::Held), and by the clocks of the holder and of this machine, the last renewal is older than
    /// the lease. The store does not tell its age.
    Doubtful,
    /// The lease was seen without a renewal for its whole duration, or is older than that by the store's clock.
    Expired,
    /// The lease has no holder.
    Free,
    /// The lease has no holder, and by the history of the lock, the last work failed.
    Failed,
    /// The object does not exist.
    #[default]
    Absent,
    /// Another process leads with the same identity.
    DuplicateIdentity,
    /// The store or the object is of no use.
    Unknown(Cause),
}

impl LockStatus {
    /// The status of a lease that has a holder and was last renewed at `renewed`, by the holder's clock. The date of the store
    /// counts more than that clock.
    pub(crate) fn of_lease(
        lease: Option<Duration>,
        age: Option<&Age>,
        store_age: Option<Duration>,
        renewed: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Self {
        let is_over = |age: Duration, grain| lease.is_some_and(|lease| age > lease.saturating_add(grain));
        match (age, store_age) {
            (Some(Age { expired: true, .. }), _) => Self::Expired,
            (Some(Age { renewed: true, .. }), _) => Self::Led,
            (_, Some(age)) if is_over(age, GRAIN) => Self::Expired,
            (_, None)
                if renewed
                    .is_some_and(|renewed| (now - renewed).to_std().is_ok_and(|age| is_over(age, Duration::ZERO))) =>
            {
                Self::Doubtful
            }
            _ => Self::Held,
        }
    }

    pub(crate) fn is_led(self) -> bool {
        matches!(self, Self::Led | Self::HandingOver | Self::Held)
    }

    pub(crate) fn is_trouble(self) -> bool {
        !self.is_led() && self != Self::Free
    }

    /// The next step of somebody who was called for this lock; `None` if nobody is needed. [`View`](super::view::View) puts the
    /// lock's own lease and URL in the place of the words in capitals.
    pub(crate) fn next_step(self) -> Option<&'static str> {
        Some(match self {
            Self::Led | Self::Held | Self::HandingOver | Self::Unknown(Cause::NotYet) => return None,
            Self::Doubtful => {
                "check whether that process still runs, and start it again if it is dead; if nobody can tell, use `leaderelect status --watch-for LEASE URL`"
            }
            Self::Expired => {
                "start that process again if it is dead, or else read its log; no other candidate seems to run, but if one does, read its log, too"
            }
            Self::Free => {
                "if somebody should lead now, start a process that competes for this lock, or read the logs of those that run"
            }
            Self::Failed => {
                "read the log there, mend the cause, and start a candidate, which runs it again, unless one waits already; `leaderelect history URL` shows all runs"
            }
            Self::Absent => "check the URL, or find out who deleted it; the next candidate creates it",
            Self::DuplicateIdentity => {
                "restart this process with its own `--identity`; do not release the lease, because its holder is alive"
            }
            Self::Unknown(Cause::NotARecord) => {
                "inspect it, and move it away or give all candidates another name for the lock; no candidate writes over it"
            }
            Self::Unknown(Cause::Refuses | Cause::NotNow) => {
                "do what the error says; candidates try again by themselves"
            }
            Self::Unknown(Cause::Silent) => "check the store and the network; candidates try again by themselves",
        })
    }

    /// The state after one read, and the standing after all polls, for programs.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Led => ("held", "alive"),
            Self::Held => ("held", "held"),
            Self::HandingOver => ("held", "handingOver"),
            Self::Doubtful => ("held", "doubtful"),
            Self::Expired => ("held", "expired"),
            Self::DuplicateIdentity => ("held", "clash"),
            Self::Free => ("free", "free"),
            Self::Failed => ("free", "failed"),
            Self::Absent => ("absent", "absent"),
            Self::Unknown(Cause::NotARecord) => ("unreadable", "unreadable"),
            Self::Unknown(_) => ("unreachable", "unreachable"),
        }
    }

    /// The name of the style class.
    pub(crate) fn tone(self) -> &'static str {
        match self {
            Self::Led => "good",
            Self::HandingOver | Self::Held => "calm",
            Self::Free => "idle",
            _ => "bad",
        }
    }
}

/// The word for people.
impl fmt::Display for LockStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HandingOver => "handing over",
            Self::Doubtful => "stale?",
            Self::DuplicateIdentity => "duplicate identity",
            Self::Unknown(Cause::NotARecord) => "not a record",
            Self::Unknown(_) => "cannot be read",
            other => other.names().1,
        })
    }
}

impl Serialize for LockStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (state, standing) = self.names();
        let mut fields = serializer.serialize_struct("LockStatus", 2)?;
        fields.serialize_field("state", state)?;
        fields.serialize_field("standing", standing)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_outweighs_the_holders_clock_and_a_renewal_both() {
        let second = Duration::from_secs(1);
        let renewed = DateTime::UNIX_EPOCH;
        let status = |renews: bool, age: Option<u32>, now: u32| {
            let seen = Age { watched_for: None, unchanged_for: second, left: None, expired: false, renewed: renews };
            let age = age.map(|age| age * second);
            LockStatus::of_lease(Some(15 * second), Some(&seen), age, Some(renewed), renewed + now * second)
        };
        assert_eq!(status(false, None, 15), LockStatus::Held);
        assert_eq!(status(false, None, 1_500), LockStatus::Doubtful);
        assert_eq!(status(false, Some(3), 1_500), LockStatus::Held, "the clock of the holder is wrong");
        assert_eq!(status(false, Some(16), 1), LockStatus::Held, "an age may be a second too large");
        assert_eq!(status(false, Some(1_500), 1), LockStatus::Expired);
        assert_eq!(status(true, Some(1_500), 1_500), LockStatus::Led);
    }
}
