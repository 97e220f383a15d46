//! One question to the checker: the processes, their locks, and what may happen to them.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election;
use leaderelection::sessions::machine::SessionConfig;

/// The advance of a clock in one step.
pub(super) const TICK: u64 = 2;

/// Kinds of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slow {
    /// Reads and listings.
    pub reads: bool,
    /// Writes to a process's own session.
    pub own: bool,
    /// Writes to other sessions, and deletions.
    pub peers: bool,
    /// Writes to locks.
    pub locks: bool,
}

/// One question to the checker.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The identity of each node.
    pub nodes: Vec<&'static str>,
    /// The number of locks.
    pub locks: usize,
    /// Lease duration, renew deadline and retry period in clock units. A clock advances by [`TICK`] units in one step.
    pub timings: [u64; 3],
    /// The longest pause between two polls of all locks, in clock units.
    pub scan_interval: u64,
    /// The time after which the object of an ended session is deleted, in clock units.
    pub delete_after: Option<u64>,
    /// The number of requests that a member sends at a time, besides those for its own session.
    pub max_in_flight: usize,
    /// `true` if members list the locks and the sessions, and read only what has changed.
    pub lists: bool,
    /// The number of a lock's tokens after the first that are explored.
    pub last_token: u64,
    /// The number of sessions that each node opens.
    pub sessions: usize,
    /// The number of writes that may be in flight after their senders stopped waiting. Further writes are lost.
    pub late_writes: usize,
    /// The number of messages of other sessions that nodes get, true or not.
    pub messages: usize,
    /// The session whose object only its own process may read. If no process opens it, an object is there from the beginning.
    pub denied: Option<&'static str>,
    /// The requests that take time, so that anything may happen before they arrive and before they are answered. A node
    /// makes any other request, and gets its answer, in one step.
    pub slow: Slow,
    /// `true` if a slow write either arrives and is answered at once, or is given up at once and arrives at any later
    /// moment, if it is not lost.
    pub at_once_or_late: bool,
    /// `true` if slow requests are lost. A node that crashes loses its requests in any case.
    pub losses: bool,
    /// `true` if nodes crash, and start again with the same identity.
    pub crashes: bool,
    /// `true` if nodes are asked to stop.
    pub stops: bool,
    /// `true` if nodes are asked to step down from one lock.
    pub step_downs: bool,
    /// `true` if work ends at any moment after it was cancelled.
    pub late_work: bool,
}

impl Setup {
    /// The rules of the node at `index`.
    pub fn rules(&self, index: usize) -> SessionConfig {
        let [lease, renew, retry] = self.timings.map(Duration::from_nanos);
        let mut rules = SessionConfig::new(election::ElectionConfig::new(self.nodes[index], lease, renew, retry));
        rules.scan_interval = Duration::from_nanos(self.scan_interval);
        rules.delete_after = self.delete_after.map(Duration::from_nanos);
        rules.max_in_flight = Some(self.max_in_flight);
        rules.reads_per_listing = if self.lists { 0 } else { 100 };
        rules
    }

    /// Returns the reading of every clock, which never changes: all remembered moments move into the past instead.
    pub fn now(&self) -> LocalInstant {
        let [lease, _, retry] = self.timings;
        let longest = 4 * lease + 4 * retry + self.scan_interval + self.delete_after.unwrap_or_default();
        LocalInstant::default() + Duration::from_nanos(longest)
    }
}
