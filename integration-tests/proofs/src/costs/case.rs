//! A count: so many locks, so many processes, and the way in which they lead.

use std::fmt;

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

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { way, locks, processes } = self;
        write!(f, "{}, {locks} locks, {processes} processes", way.name())
    }
}
