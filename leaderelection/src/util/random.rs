//! Randomness from the operating system.

use rand::Rng;
use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;

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

/// Returns a new random UUID of version 4. Programs with client-go append such a UUID to the name of the host.
pub(crate) fn uuid() -> String {
    spelled(bytes())
}

fn spelled(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = format!("{:032x}", u128::from_be_bytes(bytes));
    for hyphen in [8, 13, 18, 23] {
        text.insert(hyphen, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_form_of_a_uuid_of_version_4() {
        assert_eq!(spelled([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(spelled([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_ne!(uuid(), uuid());
    }
}
