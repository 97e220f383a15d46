//! The size of a suite's races.

/// The number of races in a suite, and of writers in each race.
///
/// A check makes some `3 * rounds * racers` requests. The default is for a local store; use fewer rounds for a
/// distant or metered store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The number of times that each race is run. Default: 16.
    pub rounds: usize,
    /// The number of writers that compete in a race. Default: 64.
    pub racers: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 16, racers: 64 }
    }
}
