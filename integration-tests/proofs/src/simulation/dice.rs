//! Seeded random choices: every choice of a run comes from its seed.

use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};

/// One stream of choices.
#[derive(Debug)]
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Creates an independent stream, so that the choices of one part of the world do not change those of
    /// another.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.number())
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.random_range(0..end)
    }

    pub(crate) fn within(&mut self, from: u64, to: u64) -> u64 {
        self.0.random_range(from..=to)
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.random_range(0..choices.len())]
    }

    /// Draws a duration in whole milliseconds, the resolution of the simulation's timers.
    pub(crate) fn between(&mut self, from: Duration, to: Duration) -> Duration {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.within(millis(from), millis(to).max(millis(from))))
    }

    pub(crate) fn up_to(&mut self, to: Duration) -> Duration {
        self.between(Duration::ZERO, to)
    }
}
