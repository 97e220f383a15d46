//! One count: so many locks, so many processes, and the way in which they lead.

use std::fmt;
use std::time::Duration;

use leaderelection_backends::prices::{MONTH, Prices};

pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// The way in which processes lead their locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each lock has a lease, which its leader renews.
    Leases,
    /// Each process has a session, which holds all its locks.
    Sessions,
}

impl Way {
    /// The name of the way.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Leases => "leases",
            Self::Sessions => "sessions",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Leases, Self::Sessions].into_iter().find(|way| way.name() == name)
    }
}

/// A number of processes, each of which competes for all of a number of locks, at the default timings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The way in which the processes lead.
    pub way: Way,
    /// The number of locks.
    pub locks: usize,
    /// The number of processes.
    pub processes: usize,
}

/// Requests of an hour, by their kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Conditional writes.
    pub writes: u64,
    /// Reads of one object.
    pub reads: u64,
    /// Pages of listings, each of which is one request.
    pub listings: u64,
    /// Conditional deletions.
    pub deletions: u64,
}

impl Requests {
    /// The price of a month of such hours, in dollars.
    #[must_use]
    pub fn dollars_a_month(&self, prices: &Prices) -> f64 {
        let hours = MONTH.as_secs_f64() / HOUR.as_secs_f64();
        let [writes, reads] = [self.writes + self.listings, self.reads].map(|requests| requests as f64 * hours);
        prices.dollars(writes, reads)
    }

    /// The requests since `before`, so many times.
    #[must_use]
    pub fn since(self, before: Self, times: u64) -> Self {
        Self {
            writes: (self.writes - before.writes) * times,
            reads: (self.reads - before.reads) * times,
            listings: (self.listings - before.listings) * times,
            deletions: (self.deletions - before.deletions) * times,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { way, locks, processes } = self;
        write!(f, "{}, {locks} locks, {processes} processes", way.name())
    }
}
