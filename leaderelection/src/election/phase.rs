//! The states of an election, and the data of each state.

use std::sync::Arc;

use super::attempts::Attempt;
use super::limits::Limits;
use super::rules::Rules;
use crate::clock::LocalInstant;
use crate::lock::VersionedRecord;
use crate::lock::record::{HolderRank, LeaderElectionRecord, Stamp};
use crate::store::Version;
use crate::term::{BeginReason, Ending};

/// A state of the object, as a read or an own write showed it. The record is shared, because requests and phases pass
/// it on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) record: Arc<LeaderElectionRecord>,
    pub(super) version: Version,
}

impl From<VersionedRecord> for Seen {
    fn from(VersionedRecord { record, version, .. }: VersionedRecord) -> Self {
        Self { record: Arc::new(record), version }
    }
}

/// The phase of a candidacy.
///
/// ```text
///            Begin                 an own write landed
///   Idle ------------> Following -------------------------> Won
///     ^                   |  ^                               |  the window is open: Start
///     |                   |  | the record is another's       v
///     |      Stop, and    |  +----------------- Won       Leading --+
///     |  nothing was won  |                      |           |      | a renewal landed: Extend
///     |<------------------+                      |           |<-----+
///     |                   | Stop, and a write    | Stop      |
///     |                   | may have won         |           | loss, deadline, command, or the work's end: Stop
///     |                   v                      v           v
///     +<----------------------------------------------- Ending, see there
///   Finished
/// ```
///
/// A term whose window closed before its work began does not finish: the candidate follows again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// No candidacy.
    Idle,
    /// A candidate that does not hold the lease.
    Following,
    /// The record names this candidate, by its own write that is known to have landed. The window of that write was
    /// over when its answer came, so the lease is renewed before the term starts (rule 4).
    Won { hold: Hold, reason: BeginReason },
    /// The term has started.
    Leading(Hold),
    /// Leadership is over. Nothing is sent before the work is over as well.
    Ending {
        /// The lease, as long as the record may still name this candidate. During a release, `None` if a read must first
        /// show that it does.
        held: Option<Hold>,
        ending: Box<Ending>,
    },
}

/// An own lease: the last write of this term that is known to have landed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hold {
    pub(super) token: u64,
    pub(super) seen: Seen,
    pub(super) sent_at: LocalInstant,
    /// The times of this write, or shorter ones that have been set since (rule 22).
    pub(super) limits: Limits,
    /// The moment from which renewals do not count earlier requests for the lease; `None` if there were none (rule 24).
    pub(super) forgets_at: Option<LocalInstant>,
}

/// The object as a candidate saw it at its last change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sight {
    pub(super) found: Option<Seen>,
    /// The moment at which the lease runs out, if the object does not change (rules 2 and 3).
    pub(super) lease_until: LocalInstant,
    /// The moment until which the named candidate goes first (rule 14).
    pub(super) courtesy_until: Option<LocalInstant>,
}

/// The request that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum InFlight {
    Read,
    Write {
        attempt: Attempt,
        record: Arc<LeaderElectionRecord>,
    },
    /// A request to hand over (rule 24).
    Ask(Arc<LeaderElectionRecord>),
}

impl Phase {
    /// The lease that this candidate holds in this phase, as far as is known.
    pub(super) fn hold(&self) -> Option<&Hold> {
        match self {
            Self::Idle | Self::Following => None,
            Self::Won { hold, .. } | Self::Leading(hold) => Some(hold),
            Self::Ending { held, .. } => held.as_ref(),
        }
    }

    pub(super) fn hold_mut(&mut self) -> Option<&mut Hold> {
        match self {
            Self::Idle | Self::Following => None,
            Self::Won { hold, .. } | Self::Leading(hold) => Some(hold),
            Self::Ending { held, .. } => held.as_mut(),
        }
    }
}

impl Sight {
    pub(super) fn version(&self) -> Option<&Version> {
        self.found.as_ref().map(|found| &found.version)
    }

    /// The moment from which a new term of the candidate `identity` may begin, if the object does not change.
    pub(super) fn free_at(&self, identity: &str) -> LocalInstant {
        let prefers_another =
            self.found.as_ref().is_some_and(|found| found.record.prefers_other_than(identity).is_some());
        match self.courtesy_until {
            Some(courtesy_until) if prefers_another => self.lease_until.max(courtesy_until),
            _ => self.lease_until,
        }
    }
}

impl Hold {
    pub(super) fn valid_until(&self) -> LocalInstant {
        self.sent_at + self.limits.deadline
    }

    /// The last moment at which a request that takes as long as it may is answered within the window (rule 6).
    pub(super) fn last_chance(&self, rules: &Rules) -> LocalInstant {
        self.valid_until() - rules.request_timeout
    }

    /// The earliest moment at which another candidate may take the lease.
    pub(super) fn lease_until(&self) -> LocalInstant {
        self.sent_at + self.limits.lease
    }

    /// Takes over a newer write of a term that is ending, but keeps the name of the next leader.
    pub(super) fn replace(held: &mut Option<Self>, mut newer: Self) {
        let successor = held.take().and_then(|hold| hold.successor());
        if successor.is_some() {
            newer.name_successor(successor);
        }
        *held = Some(newer);
    }

    /// Takes over a request that somebody has written into the own record. A next leader that this process has named has
    /// precedence.
    pub(super) fn annotate(&mut self, annotated: &Seen) {
        let successor = self.successor().or_else(|| annotated.record.preferred_holder.clone());
        self.seen.version = annotated.version.clone();
        let record = Arc::make_mut(&mut self.seen.record);
        record.unknown = annotated.record.unknown.clone();
        record.take_backs = annotated.record.take_backs;
        self.name_successor(successor);
    }

    /// Names the candidate that is to lead next.
    pub(super) fn name_successor(&mut self, successor: Option<String>) {
        Arc::make_mut(&mut self.seen.record).preferred_holder = successor;
    }

    /// The candidate that is to lead next. A request that names the leader itself has no effect, and must not hinder a
    /// later request.
    fn successor(&self) -> Option<String> {
        let record = &self.seen.record;
        record.prefers_other_than(&record.holder_identity).map(str::to_owned)
    }

    /// The record of the next renewal (rule 5).
    pub(super) fn renewed(&self, now: LocalInstant, rules: &Rules, stamp: Stamp) -> LeaderElectionRecord {
        let forgets = self.forgets_at.is_some_and(|forgets_at| now >= forgets_at);
        let before = &self.seen.record;
        LeaderElectionRecord {
            acquire_time: before.acquire_time,
            leader_transitions: self.token,
            preferred_holder: self.successor(),
            peer: rules.peer(self.token, before.peer.as_ref()),
            rank: HolderRank::new(rules.rank, self.token),
            take_backs: if forgets { 0 } else { before.take_backs },
            unknown: before.unknown.clone(),
            ..LeaderElectionRecord::new(&*rules.identity, rules.lease_duration)
        }
        .stamped(stamp)
    }

    /// The record that releases the lease (rule 9).
    pub(super) fn released(&self, stamp: Stamp) -> LeaderElectionRecord {
        LeaderElectionRecord { preferred_holder: self.successor(), ..LeaderElectionRecord::clone(&self.seen.record) }
            .released(stamp)
    }
}
