//! Randomness from the operating system.

use rand::Rng;
use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;
use uuid::Uuid;

/// Returns sixteen new random bytes.
///
/// No generator is kept between calls, because a clone of a running machine would draw the same numbers from that
/// generator.
pub(crate) fn bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    UnwrapErr(SysRng).fill_bytes(&mut bytes);
    bytes
}

/// Returns a new random number.
pub(crate) fn number() -> u32 {
    UnwrapErr(SysRng).next_u32()
}

/// Returns a new random name.
pub(crate) fn uuid() -> Uuid {
    uuid::Builder::from_random_bytes(bytes()).into_uuid()
}
