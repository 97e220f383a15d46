//! The randomness and the wall time of an elector's steps.

use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;

use super::wall_clock::WallClock;
use crate::clock::{Clock, LocalInstant};
use crate::election::{Draw, Jitter, Stamp};
use crate::random;

/// Draws what the state machine needs, and knows the writes of this elector.
#[derive(Debug)]
pub(super) struct Stamper {
    clock: Arc<dyn Clock>,
    wall_clock: WallClock,
    jitter: Xoshiro256PlusPlus,
    /// The generator of write ids, where tests fix it.
    seeded: Option<Xoshiro256PlusPlus>,
    /// The beginning of all write ids of this elector, and of no other's.
    prefix: String,
    now: LocalInstant,
}

impl Stamper {
    pub(super) fn new(clock: Arc<dyn Clock>, seed: Option<u64>) -> Self {
        let mut seeded = seed.map(Xoshiro256PlusPlus::seed_from_u64);
        let jitter = seeded.as_mut().map_or_else(rand::make_rng, SeedableRng::from_rng);
        let own = seeded.as_mut().map_or_else(random::bytes, |seeded| seeded.random());
        let prefix = format!("{:016x}-", u128::from_le_bytes(own) as u64);
        Self { clock, wall_clock: WallClock::default(), jitter, seeded, prefix, now: LocalInstant::default() }
    }

    /// The source of a step at `now`.
    pub(super) fn at(&mut self, now: LocalInstant) -> &mut Self {
        self.now = now;
        self
    }

    /// An id that was never used before. Random anew every time: two clones of a running machine must not write the
    /// same one, or both would take one term for theirs.
    pub(super) fn new_id(&mut self) -> String {
        let random = self.seeded.as_mut().map_or_else(random::bytes, |seeded| seeded.random());
        format!("{}{}", self.prefix, Uuid::from_bytes(random).simple())
    }

    /// Returns `true` if a write is one of this elector's, however long ago it was made.
    pub(super) fn made(&self, write_id: &str) -> bool {
        write_id.starts_with(&self.prefix)
    }
}

impl Draw for Stamper {
    fn jitter(&mut self) -> Jitter {
        Jitter::new(self.jitter.random())
    }

    fn stamp(&mut self) -> Stamp {
        let time = self.clock.wall_time();
        self.wall_clock.look(self.now, time);
        Stamp { write_id: self.new_id(), time }
    }
}
