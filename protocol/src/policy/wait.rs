//! Randomized election timeout, as in Raft: the waits before an acquisition, beyond that of the lease. They are the spread of
//! takeovers (rules 3 and 10), and the grace for the candidate that is to lead next (rule 14).

use std::time::Duration;

use crate::LocalInstant;
use crate::lease::Shown;

/// The waits before an acquisition, beyond the end of the lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The time after the end of the lease.
    pub spread: Duration,
    /// The moment until which the candidate that is named in the record goes first.
    pub preferred_until: Option<LocalInstant>,
}

impl Wait {
    /// Takes what a read has shown. `free_at` is the end of the lease now and as it was before this read. `spread` is the one that a
    /// new lease gets. `courtesy` is the time that a named candidate gets, if the record names one. Returns `false` if the waits go on
    /// as they were.
    pub fn saw(
        &mut self,
        now: LocalInstant,
        shown: Shown,
        [before, free_at]: [LocalInstant; 2],
        spread: Duration,
        courtesy: Option<Duration>,
    ) -> bool {
        let begins = |until: LocalInstant| courtesy.map(|courtesy| until.max(now) + courtesy);
        *self = match shown {
            Shown::Absent => Self::default(),
            // The waits run on even after a deletion of the object (rule 3).
            Shown::Vanished => Self { spread: before.saturating_since(free_at), preferred_until: None },
            // A request that replaces another request begins no second courtesy, because requests without end would then bar
            // every candidate.
            Shown::Named => {
                let preferred_until = self.preferred_until.or_else(|| begins(free_at + self.spread));
                Self { preferred_until, ..*self }
            }
            Shown::Written => {
                // A lease that is over needs no spread, because no other candidate waits for the same moment.
                let spread = if free_at <= now { Duration::ZERO } else { spread };
                Self { spread, preferred_until: begins(free_at + spread) }
            }
            _ => return false,
        };
        true
    }
}
