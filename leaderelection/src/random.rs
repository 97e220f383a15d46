//! Randomness from the operating system.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use uuid::Uuid;

/// Returns sixteen new random bytes.
///
/// No generator is kept between calls, because a clone of a running machine would draw the same numbers from that
/// generator.
pub(crate) fn bytes() -> [u8; 16] {
    rand::make_rng::<Xoshiro256PlusPlus>().random()
}

/// Returns a new random name.
pub(crate) fn uuid() -> Uuid {
    uuid::Builder::from_random_bytes(bytes()).into_uuid()
}
