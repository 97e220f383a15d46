//! What goes into the state machine and what comes out of it.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::LocalInstant;
use crate::lock::{LockError, VersionedRecord};
use crate::record::LeaderElectionRecord;
use crate::store::{StoreErrorKind, Version};

use super::reason::{BeginReason, EndReason};

/// What a candidate plays by. [`LeaderElectionConfig`](crate::LeaderElectionConfig) checks the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// What we write into `holderIdentity`.
    pub identity: String,
    /// How long the others leave our lease alone.
    pub lease_duration: Duration,
    /// How long we lead on one write, from before it was sent.
    pub renew_deadline: Duration,
    /// The pause between renewals, and the least between a candidate's reads.
    pub retry_period: Duration,
    /// Whether a record with our identity is ours, whoever wrote it.
    pub reclaim_own_identity: bool,
}

impl Rules {
    /// The end of a lease that is kept clear of the leader's work (rule 8).
    pub(crate) fn stop_margin(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline) / 8
    }
}

/// What makes a write unique, and when it was made by the wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Never used before, by anybody.
    pub write_id: String,
    /// For the record's times, which no decision reads.
    pub time: DateTime<Utc>,
}

/// What to send to the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Read the record.
    Read,
    /// Write the first record.
    Create {
        /// What to write.
        record: LeaderElectionRecord,
    },
    /// Replace the record.
    Update {
        /// What to write.
        record: LeaderElectionRecord,
        /// The version to replace.
        expected: Version,
    },
}

impl Request {
    /// What the lock's method is called.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read => "get",
            Self::Create { .. } => "create",
            Self::Update { .. } => "update",
        }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// To [`Request::Read`]; `Ok(None)` if there is no object.
    Read(Result<Option<VersionedRecord>, Failure>),
    /// To the writes.
    Written(Result<Version, Failure>),
}

/// Why there is no good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What is known about the effect.
    pub kind: StoreErrorKind,
    /// How long the store asked to be left alone.
    pub retry_after: Option<Duration>,
}

impl From<&LockError> for Failure {
    fn from(error: &LockError) -> Self {
        Self { kind: error.kind(), retry_after: error.retry_after() }
    }
}

/// A fraction of a pause, drawn by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Jitter(u32);

impl Jitter {
    /// The fraction `numerator / 2^32`, from 0 to just under 1.
    #[must_use]
    pub const fn new(numerator: u32) -> Self {
        Self(numerator)
    }

    /// This fraction of `duration`.
    #[must_use]
    pub fn of(self, duration: Duration) -> Duration {
        let nanos = (duration.as_nanos() * u128::from(self.0)) >> 32;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// A term of ours that is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// Larger than that of every earlier term.
    pub fencing_token: u64,
    /// When the last write that is known to have landed was sent.
    pub sent_at: LocalInstant,
    /// When leadership ends unless it is renewed.
    pub valid_until: LocalInstant,
}

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A write of ours won the lease. The term begins with [`Started`](Self::Started), now or, if the
    /// answer took too long, after a renewal.
    Acquired {
        /// The new term's token.
        fencing_token: u64,
        /// What made the lease free.
        reason: BeginReason,
    },
    /// We lead.
    Started {
        /// The new term's token.
        fencing_token: u64,
    },
    /// We do not lead any more; the work must stop.
    Stopped {
        /// The ended term's token.
        fencing_token: u64,
        /// Why it ended.
        reason: EndReason,
    },
    /// The object names another leader, or none.
    LeaderChanged {
        /// The new leader.
        leader: Option<String>,
    },
    /// The lease was given back.
    Released,
    /// The lease could not be given back in time; it runs out by itself.
    ReleaseGivenUp,
    /// Somebody else renews the lease under our identity.
    IdentityClash,
    /// The lock's token is the largest that is believed, so that no term can follow.
    TokensExhausted,
    /// The object is gone. Somebody deleted it: tokens may start again, and nobody is protected.
    Vanished,
}
