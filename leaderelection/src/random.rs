//! Randomness of the operating system's.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use uuid::Uuid;

/// Sixteen new bytes.
///
/// No generator is kept between calls: a clone of a running machine would draw the same numbers from it.
pub(crate) fn bytes() -> [u8; 16] {
    rand::make_rng::<Xoshiro256PlusPlus>().random()
}

/// A new random name.
pub(crate) fn uuid() -> Uuid {
    uuid::Builder::from_random_bytes(bytes()).into_uuid()
}
