//! The judge of a run: it knows true time, and learns of every event.

use std::time::Duration;

use crate::kit::{Longest, stats};

/// The cause of a time without a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The leader's process died.
    Crash,
    /// All processes died, and were started again.
    Blackout,
    /// The leader's process was asked to end.
    Stop,
    /// The leader's process was asked to end, as those before it, soon after their successors have begun.
    Roll,
    /// The leader gave up this lock alone.
    Release,
    /// The leader was asked to hand over to another process.
    Request,
    /// The leader handed over for balance.
    Handoff,
    /// The leader handed over to a process that is not there, or that ends before it takes the lock.
    ForNobody,
    /// An operator deleted or released the lock.
    TakenAway,
    /// An operator deleted the object of the leader's session.
    SessionDeleted,
    /// An operator put right a token that had no successor.
    Repair,
    /// The leader's session could not be renewed in time.
    Loss,
}

stats! {
    requests: u64 = "requests",
    writes: u64 = "writes",
    sessions: u64 = "sessions",
    ended_by_others: u64 = "sessions ended by others",
    deletions: u64 = "sessions deleted",
    terms: u64 = "terms",
    releases: u64 = "releases of single locks",
    max_handoffs: u64 = "hand-overs",
    crashes: u64 = "crashes",
    freezes: u64 = "freezes",
    stops: u64 = "stops",
    interventions: u64 = "interventions",
    messages: u64 = "messages received",
    drills: u64 = "drills",
    after_crash: Longest = "seconds without a leader at most after a crash",
    after_blackout: Longest = "after the crash of all",
    after_stop: Longest = "after a stop",
    after_roll: Longest = "in a rolling restart",
    after_release: Longest = "after a release",
    after_request: Longest = "after a request to hand over",
    after_hand_over: Longest = "after a hand-over for balance",
    after_intervention: Longest = "after a deletion or a forced release",
    after_loss: Longest = "after the loss of a session",
}

impl Stats {
    /// Counts a time without a leader.
    pub(super) fn count_gap(&mut self, cause: Cause, lasted: Duration) {
        *match cause {
            Cause::Crash => &mut self.after_crash,
            Cause::Blackout => &mut self.after_blackout,
            Cause::Stop => &mut self.after_stop,
            Cause::Roll => &mut self.after_roll,
            Cause::Release => &mut self.after_release,
            Cause::Request | Cause::ForNobody => &mut self.after_request,
            Cause::Handoff => &mut self.after_hand_over,
            Cause::TakenAway | Cause::SessionDeleted | Cause::Repair => &mut self.after_intervention,
            Cause::Loss => &mut self.after_loss,
        } += Longest(lasted);
    }
}

/// The state of the judge.
#[derive(Debug)]
pub(super) struct Oracle {
    pub(super) stats: Stats,
    /// For each lock: the token that the next first write has to reach.
    pub(super) next_token: Vec<u64>,
    /// For each lock: the largest token of a term whose lock an operator took away. Such a term may overlap with the next.
    pub(super) deposed: Vec<Option<u64>>,
    /// For each lock: the end of its last term and the cause of that, if no term has begun since.
    pub(super) left: Vec<Option<(Duration, Cause)>>,
}

impl Oracle {
    pub(super) fn new(locks: usize) -> Self {
        let (next_token, deposed, left) = (vec![1; locks], vec![None; locks], vec![None; locks]);
        Self { stats: Stats::default(), next_token, deposed, left }
    }

    /// Returns `true` if no operator has taken the lock away from this term.
    pub(super) fn counts(&self, lock: u32, token: u64) -> bool {
        self.deposed[lock as usize] < Some(token)
    }
}
