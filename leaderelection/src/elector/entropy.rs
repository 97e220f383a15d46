//! The randomness and the wall time of an elector's steps.

use std::fmt::Write as _;
use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::wall_clock::WallClock;
use crate::clock::{Clock, LocalInstant};
use crate::election::{EntropySource, Jitter, WriteMeta};
use crate::util::random;

/// The number of hexadecimal digits of the prefix with which all write ids of an elector begin.
const PREFIX: usize = 16;

/// The length of the longest id: the prefix, the number of the write and 16 random bytes, in hexadecimal, with hyphens between them.
const LONGEST_ID: usize = PREFIX + 1 + 16 + 1 + 32;

/// Makes jitter, write ids and wall times for the state machine, and recognizes the writes of this elector.
#[derive(Debug)]
pub(crate) struct Entropy {
    clock: Arc<dyn Clock>,
    wall_clock: WallClock,
    jitter: Xoshiro256PlusPlus,
    /// The generator of write ids, if a test has set a seed.
    seeded: Option<Box<Xoshiro256PlusPlus>>,
    /// The random prefix of all write ids of this elector. No other elector has the same one.
    prefix: u64,
    /// The number of ids made so far, which is also the number of the last one.
    made: u64,
    /// The time of the current step.
    now: LocalInstant,
}

impl Entropy {
    pub(crate) fn new(clock: Arc<dyn Clock>, seed: Option<u64>) -> Self {
        let mut seeded = seed.map(|seed| Box::new(Xoshiro256PlusPlus::seed_from_u64(seed)));
        // Jitter only keeps candidates apart, so a fast generator is enough. Ids must never repeat: see `new_id`.
        let jitter = seeded.as_mut().map_or_else(rand::make_rng, SeedableRng::from_rng);
        let bytes = seeded.as_mut().map_or_else(random::bytes, |seeded| seeded.random());
        let prefix = u128::from_le_bytes(bytes) as u64;
        Self { clock, wall_clock: WallClock::default(), jitter, seeded, prefix, made: 0, now: LocalInstant::default() }
    }

    /// Returns the source for a step at `now`.
    pub(crate) fn at(&mut self, now: LocalInstant) -> &mut Self {
        self.now = now;
        self
    }

    /// Returns an id that was never used before. Every id has new random bytes, because a running machine may be cloned: if both clones
    /// wrote the same id, both would take the term for their own.
    pub(crate) fn new_id(&mut self) -> String {
        let random = self.seeded.as_mut().map_or_else(random::bytes, |seeded| seeded.random());
        self.made += 1;
        // Every renewal needs an id, so the memory is allocated only once.
        let mut id = String::with_capacity(LONGEST_ID);
        let (prefix, number, random) = (self.prefix, self.made, u128::from_be_bytes(random));
        // Writing to a string never fails.
        let _ = write!(id, "{prefix:0PREFIX$x}-{number:x}-{random:032x}");
        id
    }

    /// Returns the number of the write with this id; `None` if another elector made the id. Later numbers are larger.
    pub(crate) fn number_of(&self, write_id: &str) -> Option<u64> {
        let (prefix, rest) = write_id.split_once('-')?;
        // `from_str_radix` also accepts capital letters and a sign, which no id of an elector has.
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_well_formed = prefix.len() == PREFIX && prefix.bytes().all(is_digit);
        if !is_well_formed || u64::from_str_radix(prefix, 16) != Ok(self.prefix) {
            return None;
        }
        u64::from_str_radix(rest.split_once('-')?.0, 16).ok()
    }
}

impl EntropySource for Entropy {
    fn jitter(&mut self) -> Jitter {
        Jitter::new(self.jitter.random())
    }

    fn stamp(&mut self) -> WriteMeta {
        let time = self.clock.wall_time();
        // Checked here, because every write reads the wall clock anyway.
        self.wall_clock.check(self.now, time);
        WriteMeta { write_id: self.new_id(), time }
    }
}
