//! Randomized election timeout, as in Raft: how long a candidate waits after a lease has expired. The candidate waits a
//! random *spread* (rules 3 and 10), and lets the candidate that a request named go first (rule 14).

use std::time::Duration;

use crate::LocalInstant;
use crate::lease::Shown;

/// The waits of a candidate after a lease has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The random wait after the end of the lease.
    pub spread: Duration,
    /// The moment until which the candidate that the record names goes first.
    pub preferred_until: Option<LocalInstant>,
}

impl Wait {
    /// Takes what a read has shown. `before` is the moment at which the lease would have become free without this read, and `free_at` is
    /// the end of the lease now. A new lease gets `spread`. `grace` is how long the candidate that the record names goes first, if it names
    /// one. Returns `false` if the waits did not change.
    pub fn saw(
        &mut self,
        now: LocalInstant,
        shown: Shown,
        [before, free_at]: [LocalInstant; 2],
        spread: Duration,
        grace: Option<Duration>,
    ) -> bool {
        let begins = |until: LocalInstant| grace.map(|grace| until.max(now) + grace);
        *self = match shown {
            Shown::Absent => Self::default(),
            // After a deletion of the object, all waits continue (rule 3). They are combined into one spread.
            Shown::Vanished => Self { spread: before.saturating_since(free_at), preferred_until: None },
            // A second request does not restart the grace: otherwise, endless requests would block every candidate.
            Shown::Named => {
                let preferred_until = self.preferred_until.or_else(|| begins(free_at + self.spread));
                Self { preferred_until, ..*self }
            }
            Shown::Written => {
                // A lease that has ended already needs no spread, because nobody else waits for the same moment.
                let spread = if free_at <= now { Duration::ZERO } else { spread };
                Self { spread, preferred_until: begins(free_at + spread) }
            }
            _ => return false,
        };
        true
    }
}
