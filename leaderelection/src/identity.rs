//! Who a candidate is.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// The longest identity that is accepted, in bytes.
pub const MAX_IDENTITY_BYTES: usize = 256;

/// An identity that no other process has: the host's name, `_`, and a random UUID.
///
/// A new one on every call. Keep it for the life of the process, and do not store it: a process that
/// starts again is another candidate.
///
/// ```
/// let identity = leaderelection::unique_identity();
/// assert_ne!(identity, leaderelection::unique_identity());
/// ```
#[must_use]
pub fn unique_identity() -> String {
    const LONGEST_HOST: usize = 128;
    let mut identity = String::new();
    for c in gethostname::gethostname().to_string_lossy().chars().filter(|c| !c.is_control()) {
        if identity.len() + c.len_utf8() > LONGEST_HOST {
            break;
        }
        identity.push(c);
    }
    let uuid = uuid::Builder::from_random_bytes(rand::make_rng::<Xoshiro256PlusPlus>().random()).into_uuid();
    identity + &format!("_{uuid}")
}

/// Enough of an identity to recognise it in an error.
pub(crate) fn excerpt(identity: &str) -> String {
    identity.chars().take(40).collect()
}

/// What is wrong with an identity, if anything is.
pub(crate) fn problem_with(identity: &str) -> Option<String> {
    if identity.is_empty() {
        return Some("is empty".to_owned());
    }
    if identity.len() > MAX_IDENTITY_BYTES {
        return Some(format!("has {} bytes, more than {MAX_IDENTITY_BYTES}", identity.len()));
    }
    let control = identity.chars().find(|c| c.is_control())?;
    Some(format!("contains the control character {control:?}"))
}
