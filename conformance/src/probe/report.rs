//! The report of a probe.

use std::fmt;
use std::time::Duration;

use leaderelection::timings::Latencies;

use super::check::{Check, CheckKind, Outcome};

/// The judgement on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// The store kept its contract in every check that an election depends on.
    Fit,
    /// The store broke the contract that keeps leaders exclusive.
    Unfit,
    /// The store refuses calls that it has to accept, so that nobody could keep the lease. No check saw two winners.
    Unusable,
    /// The store answered with errors, or not in time. Remove the cause and probe again.
    Inconclusive,
}

/// The conditional writes that a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreKind {
    /// It creates an object if there is none, and replaces an object by its version.
    Full,
    /// It creates an object if there is none, and replaces none by a version. A
    /// [`SequencedStore`](leaderelection_sequenced::SequencedStore) elects leaders on it.
    CreateOnly,
    /// It does neither reliably.
    Neither,
    /// Errors or missing answers leave it open.
    Unknown,
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full => "full",
            Self::CreateOnly => "create only",
            Self::Neither => "neither",
            Self::Unknown => "unknown",
        })
    }
}

const HELP_FOR_STORES_THAT_CREATE: &str = "\
the store creates if absent and refuses to replace by a version: it can elect leaders through SequencedStore, with one \
object per write; a URL that begins with sequenced+ names such a lock";

const HELP_FOR_THE_UNUSABLE: &str = "\
some S3-compatible stores, such as Ceph's gateway, compare ETags without their quotes: probe again with \
bare_etags=true in the URL (`S3Store::with_bare_etags`)";

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
    pub(super) fn of(latencies: Vec<Duration>) -> Option<Self> {
        let latencies = Latencies::of(latencies)?;
        let [min, median, p99] = [0, 500, 990].map(|per_mille| latencies.per_mille(per_mille));
        Some(Self { min, median, p99 })
    }
}

/// The checks of a [probe](crate::probe()), the answers of the store, and the verdict. Displayed as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeReport {
    pub(super) place: String,
    pub(super) checks: Vec<Check>,
    /// The store was probed as one that can only create.
    pub(super) creates_only: bool,
    pub(super) races: usize,
    pub(super) requests: usize,
    pub(super) latency: Option<Latency>,
    pub(super) duration: Duration,
    pub(super) leftovers: Vec<String>,
    pub(super) unanswered_creates: usize,
    pub(super) is_out_of_time: bool,
    pub(super) last_error: Option<String>,
}

impl ProbeReport {
    /// The judgement on the store. Only checks [that an election depends on](super::CheckKind::is_required)
    /// count.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.decisive().map(Check::outcome) {
            None => Verdict::Fit,
            Some(Outcome::Failed) => Verdict::Unfit,
            Some(Outcome::Refused) => Verdict::Unusable,
            Some(_) => Verdict::Inconclusive,
        }
    }

    /// The conditional writes that the store can do.
    #[must_use]
    pub fn kind(&self) -> StoreKind {
        let has_passed = |kind| self.checks.iter().any(|check| check.kind == kind && check.outcome == Outcome::Passed);
        match self.verdict() {
            Verdict::Fit if self.creates_only => StoreKind::CreateOnly,
            Verdict::Fit => StoreKind::Full,
            Verdict::Unfit => StoreKind::Neither,
            _ if has_passed(CheckKind::StaleUpdate) => StoreKind::Unknown,
            _ if has_passed(CheckKind::CreateTwice) && has_passed(CheckKind::RacingCreators) => StoreKind::CreateOnly,
            _ => StoreKind::Unknown,
        }
    }

    /// Every check, in the order in which they were run.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The check that decided against the store: the first failed check, or else the first one that was refused what
    /// it asks for, or else the first inconclusive check; `None` if the store is fit.
    #[must_use]
    pub fn decisive(&self) -> Option<&Check> {
        let first = |wanted: fn(Outcome) -> bool| {
            self.checks.iter().find(|check| check.kind.is_required() && wanted(check.outcome))
        };
        first(|outcome| outcome == Outcome::Failed)
            .or_else(|| first(|outcome| outcome == Outcome::Refused))
            .or_else(|| first(|outcome| outcome != Outcome::Passed))
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

    /// Returns `true` if the time limit ended the checks.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.is_out_of_time
    }

    /// The error of the last request of the checks; `None` if the store accepted that request, or refused it because of its
    /// condition.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// The objects that may still exist, because their deletion failed.
    #[must_use]
    pub fn leftovers(&self) -> &[String] {
        &self.leftovers
    }
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, checks, races, requests, duration, leftovers, unanswered_creates, .. } = self;
        let verdict = match self.verdict() {
            Verdict::Fit => "fit for leader election",
            Verdict::Unfit => {
                "UNFIT: it breaks the contract that keeps leaders exclusive; do not use it for leader election"
            }
            Verdict::Unusable => {
                "UNUSABLE: it refuses writes that it has to accept, so that nobody could keep the lease"
            }
            Verdict::Inconclusive => "inconclusive: errors or missing answers; remove the cause and probe again",
        };
        writeln!(f, "{verdict}\n")?;
        for Check { kind, outcome, detail } in checks {
            writeln!(f, "  {kind:<28}{outcome:<14}{detail}")?;
            if !kind.is_required() && !matches!(outcome, Outcome::Passed | Outcome::Skipped) {
                writeln!(f, "  {:<42}no election depends on it", "")?;
            }
        }
        match self.verdict() {
            Verdict::Fit => writeln!(
                f,
                "\nno race had two winners ({races} races): a fault that shows in 1 of {} races would have been found with a \
                 probability of 95%; to find a rarer one, probe with more rounds",
                // What has not happened in n tries happens less often than in three of n, with that certainty.
                (races / 3).max(1)
            )?,
            Verdict::Unusable => writeln!(f, "\n{HELP_FOR_THE_UNUSABLE}")?,
            Verdict::Unfit | Verdict::Inconclusive => {}
        }
        if self.verdict() != Verdict::Fit && self.kind() == StoreKind::CreateOnly {
            writeln!(f, "\n{HELP_FOR_STORES_THAT_CREATE}")?;
        }
        let meaning = match self.kind() {
            StoreKind::Full => " (conditional creates and updates)",
            StoreKind::CreateOnly => " (conditional creates, for sequenced locks)",
            StoreKind::Neither => " (no reliable conditional writes)",
            StoreKind::Unknown => "",
        };
        writeln!(f, "\nkind of store: {}{meaning}", self.kind())?;
        writeln!(f, "probed {place}")?;
        write!(f, "{requests} requests in {duration:.1?}")?;
        if let Some(Latency { min, median, p99 }) = self.latency {
            write!(f, "; latency min {min:.1?}, median {median:.1?}, p99 {p99:.1?}")?;
        }
        if *unanswered_creates > 0 {
            write!(f, "\n{unanswered_creates} creates had no answer; if they still arrive, their objects stay there")?;
        }
        for (index, object) in leftovers.iter().enumerate() {
            let heading = "\nmay have been left behind; delete by hand:";
            write!(f, "{}\n  {object}", if index == 0 { heading } else { "" })?;
        }
        Ok(())
    }
}
