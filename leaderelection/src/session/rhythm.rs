//! Rule S8: the looks at another session, which follow the session's renewals.
//!
//! A member waits for a lease from the look that first showed the last renewal of a session. So a look should come soon
//! after each renewal. Renewals are one retry period apart, and no clock but the member's own is needed to meet them:
//!
//! ```text
//!   renewals       |               |               |               |               |
//!   looks            x              x             -  x               x              x
//!                    the looks come earlier        one comes too early, and the next one a little later
//! ```

use std::time::Duration;

use crate::clock::LocalInstant;

/// The longest delay of a look behind its renewal, as a divisor of the retry period.
const LATE: u32 = 8;

/// The step by which looks come earlier than the renewals, as a divisor of the retry period. The step is greater than
/// what a timer is late, and so small that few looks come too early.
const STEP: u32 = 128;

/// The looks at another session, and what they tell about the times of its renewals. All moments are those at which a
/// request was sent: the store looks and renews after that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rhythm {
    pub(super) looked_at: LocalInstant,
    /// The moment before which the last renewal did not land.
    pub(super) renewed_from: LocalInstant,
    /// The moment of the look that the next renewal is to precede by little.
    pub(super) aim: LocalInstant,
}

impl Rhythm {
    /// Takes a look that was sent at `now`. `before` is the rhythm before this look; `is_renewed` is `false` if the look
    /// shows what the last one showed.
    pub(super) fn after_look(before: Option<&Self>, now: LocalInstant, is_renewed: bool, retry: Duration) -> Self {
        let renewed_from = match before {
            Some(before) if !is_renewed => return Self { looked_at: now, ..before.clone() },
            Some(before) => before.looked_at.max(before.renewed_from + retry).max(now - retry).min(now),
            None => now - retry,
        };
        let late = now.saturating_since(renewed_from);
        // The next look halves the time in which the renewal may have landed, until that time is short.
        let earlier = if late > retry / LATE { late / 2 } else { retry / STEP };
        Self { looked_at: now, renewed_from, aim: now + (retry - earlier) }
    }

    /// The moment of the next look.
    pub(super) fn next_look(&self, retry: Duration) -> LocalInstant {
        if self.looked_at < self.aim {
            return self.aim;
        }
        // The renewal is due. The pauses double if it does not come.
        let shortest = (retry / LATE).max(Duration::from_nanos(1));
        self.looked_at + self.looked_at.saturating_since(self.aim).max(shortest).min(retry.max(shortest))
    }
}
