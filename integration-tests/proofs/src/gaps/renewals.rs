//! The renewals of one process's session, as its way to the store sees them.

use std::time::Duration;

use leaderelection::Precondition;
use tokio::time::Instant;

/// The renewals of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Renewals {
    /// The key of the session's object.
    key: String,
    sent_at: Option<Instant>,
    /// The moment of the last one that landed.
    pub(super) landed_at: Option<Instant>,
    pub(super) longest: Pauses,
}

/// The longest times between two renewals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// From the moment at which one was sent to that at which the next was.
    pub sent: Duration,
    /// From the moment at which one landed to that at which the next did.
    pub landed: Duration,
}

impl Renewals {
    /// Takes a write that is sent. A process creates no session's object but its own.
    pub(super) fn sends(&mut self, key: &str, precondition: &Precondition) {
        if key.contains("/sessions/") && *precondition == Precondition::Absent {
            (self.key, self.sent_at, self.landed_at) = (key.to_owned(), None, None);
        }
        if key == self.key {
            let before = self.sent_at.replace(Instant::now());
            self.longest.sent = self.longest.sent.max(before.map_or(Duration::ZERO, |before| before.elapsed()));
        }
    }

    /// Takes a write that landed.
    pub(super) fn landed(&mut self, key: &str) {
        if key == self.key {
            let before = self.landed_at.replace(Instant::now());
            self.longest.landed = self.longest.landed.max(before.map_or(Duration::ZERO, |before| before.elapsed()));
        }
    }
}

impl Pauses {
    pub(super) fn longer(self, other: Self) -> Self {
        Self { sent: self.sent.max(other.sent), landed: self.landed.max(other.landed) }
    }
}
