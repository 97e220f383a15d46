//! The report of a probe.

use std::fmt;
use std::time::Duration;

use super::check::{Check, Outcome};

/// The judgement on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// The store kept its contract in every check that an election depends on.
    Fit,
    /// The store broke the contract that keeps leaders exclusive.
    Unfit,
    /// The store answered with errors, or not in time. Remove the cause and probe again.
    Inconclusive,
}

/// The durations of all answered requests, errors included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// The shortest duration.
    pub min: Duration,
    /// The duration that half of the requests did not exceed.
    pub median: Duration,
    /// The duration that 99 per cent of the requests did not exceed.
    pub p99: Duration,
}

impl Latency {
    pub(super) fn of(mut latencies: Vec<Duration>) -> Option<Self> {
        latencies.sort_unstable();
        let rank = |percent: usize| latencies.get((latencies.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(Self { min: rank(0)?, median: rank(50)?, p99: rank(99)? })
    }
}

/// The checks of a [probe](crate::probe()), the answers of the store, and the verdict. Displayed as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeReport {
    pub(super) place: String,
    pub(super) checks: Vec<Check>,
    pub(super) writers: usize,
    pub(super) rounds: usize,
    pub(super) requests: usize,
    pub(super) latency: Option<Latency>,
    pub(super) duration: Duration,
    pub(super) leftovers: Vec<String>,
}

impl ProbeReport {
    /// The judgement on the store. Only checks [that an election depends on](super::CheckKind::is_required)
    /// count.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.decisive().map(Check::outcome) {
            None => Verdict::Fit,
            Some(Outcome::Failed) => Verdict::Unfit,
            Some(_) => Verdict::Inconclusive,
        }
    }

    /// Every check, in the order in which they were run.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The check that decided against the store: the first failed check, or else the first inconclusive check;
    /// `None` if the store is fit.
    #[must_use]
    pub fn decisive(&self) -> Option<&Check> {
        let first = |wanted: fn(Outcome) -> bool| {
            self.checks.iter().find(|check| check.kind.is_required() && wanted(check.outcome))
        };
        first(|outcome| outcome == Outcome::Failed).or_else(|| first(|outcome| outcome != Outcome::Passed))
    }

    /// The place of the probe's objects, such as `s3://bucket/leaderelection-probe/…`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The number of requests that were sent.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// The durations of the requests; `None` if no request was answered. Most requests ran concurrently with
    /// many others.
    #[must_use]
    pub fn latency(&self) -> Option<Latency> {
        self.latency
    }

    /// The duration of the probe.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// The objects that may still exist, because their deletion failed, or because a write without an answer
    /// may still create them.
    #[must_use]
    pub fn leftovers(&self) -> &[String] {
        &self.leftovers
    }
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, checks, writers, rounds, requests, duration, leftovers, .. } = self;
        let verdict = match self.verdict() {
            Verdict::Fit => "fit to elect leaders on",
            Verdict::Unfit => "UNFIT: it breaks the contract that keeps leaders exclusive; do not elect leaders on it",
            Verdict::Inconclusive => "inconclusive: the store answered with errors; remove the cause and probe again",
        };
        writeln!(f, "{verdict}\n")?;
        for Check { kind, outcome, detail } in checks {
            writeln!(f, "  {kind:<28}{outcome:<14}{detail}")?;
            if !kind.is_required() && *outcome == Outcome::Failed {
                writeln!(f, "  {:<42}no election depends on it", "")?;
            }
        }
        writeln!(f, "\nprobed {place}")?;
        write!(f, "{requests} requests in {duration:.1?}, races of {writers} writers in {rounds} rounds")?;
        if let Some(Latency { min, median, p99 }) = self.latency {
            write!(f, "; latency min {min:.1?}, median {median:.1?}, p99 {p99:.1?}")?;
        }
        for (index, object) in leftovers.iter().enumerate() {
            let heading = "\nmay have been left behind; delete by hand:";
            write!(f, "{}\n  {object}", if index == 0 { heading } else { "" })?;
        }
        Ok(())
    }
}
