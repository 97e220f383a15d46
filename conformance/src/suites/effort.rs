//! The size of a suite's races.

/// The number of races in a suite, and of writers in each race.
///
/// A round has two races more than a [probe](crate::probe()), and some 500 requests. The default is for a local store; use fewer
/// rounds for a distant or metered store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The number of times that all races are run. Default: 16.
    pub rounds: usize,
    /// The number of writers that compete in the widest races, at least 2. Default: 64.
    pub racers: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 16, racers: 64 }
    }
}
