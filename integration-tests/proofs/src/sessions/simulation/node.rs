//! A node and its process, with a clock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::clock::LocalInstant;
use leaderelection::election::{EntropySource, Jitter, WriteMeta};
use leaderelection::sessions::machine::{LockId, Member, SessionEntropy};

use crate::kit::Work;
use crate::sessions::wire::Target;
use crate::simulation::clock::Course;
use crate::simulation::dice::Dice;
use crate::simulation::timings::Timings;

/// A process's view of one lock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    pub(super) leads: Option<u64>,
    pub(super) ended: Option<u64>,
    pub(super) work: Work,
}

/// A process.
#[derive(Debug)]
pub(super) struct Process {
    /// The number of the process, which no other process of the run has.
    pub(super) number: u64,
    pub(super) identity: String,
    pub(super) timings: Timings,
    pub(super) member: Member,
    pub(super) seats: Vec<Seat>,
    /// The number of the request to each target.
    pub(super) in_flight: BTreeMap<Target, u64>,
    pub(super) lease_end: Option<LocalInstant>,
    /// The moment in true time at which the process was asked to stop.
    pub(super) stopped_at: Option<Duration>,
    /// The moment in true time of the next read of the clock.
    pub(super) wakes_at: Option<Duration>,
    pub(super) ids: Ids,
}

/// A machine.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) clock: Course,
    pub(super) process: Option<Process>,
    /// The end of a freeze of the process.
    pub(super) frozen_until: Duration,
    pub(super) link_down_until: Duration,
    /// The end of a time in which every read of another session, and every listing of the sessions, shows no object.
    pub(super) blind_until: Duration,
}

impl Node {
    /// Returns the token of the term of a lock that is valid now.
    pub(super) fn leading(&self, now: Duration, lock: u32) -> Option<u64> {
        let process = self.process.as_ref()?;
        process.member.leading(self.clock.local_at(now), LockId(lock)).map(|term| term.fencing_token)
    }

    /// Returns `true` if the process's session has this ID, and is valid now.
    pub(super) fn has_valid_session(&self, now: Duration, session: &str) -> bool {
        let session_of = |process: &Process| {
            process.member.session(self.clock.local_at(now)).is_some_and(|(id, is_open)| **id == *session && is_open)
        };
        self.process.as_ref().is_some_and(session_of)
    }
}

/// A change of the members that is in flight.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The node whose process leaves, and then joins.
    pub(super) node: usize,
    pub(super) has_joined: bool,
    /// The leader of each lock before the change.
    pub(super) before: Vec<Option<Leader>>,
}

/// The leader of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    pub(super) process: u64,
    pub(super) identity: String,
    pub(super) token: u64,
}

impl Change {
    /// Returns `true` if no process may start on this node.
    pub(super) fn keeps_out(&self, node: usize) -> bool {
        self.node == node && !self.has_joined
    }
}

/// The names and the chance of a process.
#[derive(Debug)]
pub(super) struct Ids {
    pub(super) process: u64,
    pub(super) drawn: u64,
    pub(super) dice: Dice,
    /// The wall time of the process.
    pub(super) time: DateTime<Utc>,
}

impl EntropySource for Ids {
    fn jitter(&mut self) -> Jitter {
        Jitter::new(u32::try_from(self.dice.below(1 << 32)).unwrap_or_default())
    }

    fn stamp(&mut self) -> WriteMeta {
        self.drawn += 1;
        WriteMeta { write_id: format!("p{}-{}", self.process, self.drawn), time: self.time }
    }
}

impl SessionEntropy for Ids {
    fn session(&mut self) -> Arc<str> {
        self.drawn += 1;
        format!("s{}-{}", self.process, self.drawn).into()
    }
}
