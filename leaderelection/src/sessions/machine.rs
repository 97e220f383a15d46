//! Sessions as a pure state machine: one process leads many locks, and renews only its session.
//!
//! A driver passes an [`Input`] and the time to a [`Member`], and carries out every [`Effect`]. Inside the member, an
//! [`Election`](crate::election::Election) renews the member's own session. A lock has no lease of its own: it names the session that
//! holds it.
//!
//! Numbers in comments refer to the rules of [the protocol](crate::protocol).

mod attempt;
mod balance;
mod effect;
mod ending;
mod hand_over;
mod holds;
mod input;
mod job;
mod leaving;
mod listing;
mod local_session;
mod lock;
mod member;
mod missing;
mod own;
mod pacing;
mod peer;
mod peer_feed;
mod progress;
mod record;
mod rules;
mod scan;
mod takeover_rank;
mod taking;
mod visit;
mod wanting;
mod watch;

use std::sync::Arc;
use std::time::Duration;

pub use effect::{Effect, Fact, PeerRequest, Refusal};
pub use input::{Input, SessionEntropy};
pub use listing::Page;
pub use member::Member;
pub(crate) use peer::is_session;
pub use progress::Progress;
pub use rules::{MAX_WEIGHT, SessionConfig};

use crate::lock::record::{LeaderElectionRecord, RecordError};

/// The ID of a session. No ID is ever used twice.
pub type SessionId = Arc<str>;

/// The number of a lock of a [`Member`]. The number of a removed lock is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(pub u32);

impl LockId {
    fn of(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// Parses the record of a lock or of a session. A lock without a lease is accepted if it names a session.
///
/// # Errors
///
/// The error names the field and the problem. The caller must not overwrite such an object.
pub fn read_record(body: &[u8], max_lease_duration: Duration) -> Result<LeaderElectionRecord, RecordError> {
    crate::lock::record::parse_of_session(body, max_lease_duration)
}
