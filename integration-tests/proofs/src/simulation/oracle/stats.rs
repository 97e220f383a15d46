//! The numbers of a run.

use std::ops::AddAssign;

/// Statistics of a run, which show whether the run explored enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests sent.
    pub requests: u64,
    /// Writes that took effect.
    pub writes: u64,
    /// Terms of leadership.
    pub terms: u64,
    /// Terms that ended at the renew deadline.
    pub deadlines: u64,
    /// Terms that ended because the record belonged to another holder.
    pub losses: u64,
    /// Leases released.
    pub releases: u64,
    /// Crashes of a process.
    pub crashes: u64,
    /// Freezes of a process.
    pub freezes: u64,
    /// Stops of everything in the midst of a step.
    pub standstills: u64,
    /// Clashes of identities that were reported.
    pub clashes: u64,
    /// Interventions of an operator that took effect.
    pub interventions: u64,
    /// Writes of a candidate of another library that took effect.
    pub strangers: u64,
    /// Jobs that a release has marked as done.
    pub jobs: u64,
    /// Successes of jobs that had succeeded before, without a mark that was read.
    pub repetitions: u64,
    /// Words of peers that reached a candidate.
    pub words: u64,
    /// Creations that landed at a number that had been removed.
    pub late_creations: u64,
    /// Requests of better candidates that took effect.
    pub take_backs: u64,
    /// Leaders that forgot earlier requests, because they had led for long.
    pub forgiven: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.writes += other.writes;
        self.terms += other.terms;
        self.deadlines += other.deadlines;
        self.losses += other.losses;
        self.releases += other.releases;
        self.crashes += other.crashes;
        self.freezes += other.freezes;
        self.standstills += other.standstills;
        self.clashes += other.clashes;
        self.interventions += other.interventions;
        self.strangers += other.strangers;
        self.jobs += other.jobs;
        self.repetitions += other.repetitions;
        self.words += other.words;
        self.late_creations += other.late_creations;
        self.take_backs += other.take_backs;
        self.forgiven += other.forgiven;
    }
}
