//! The key that all candidates share, by which a peer proves that it is one of them.

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use leaderelection::ConfigError;
use leaderelection_serving::secret;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

/// The accepted lengths of a key, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 32..=4096;

/// Begins everything that is authenticated, so that no code for another purpose fits.
const DOMAIN: &[u8] = b"leaderelection-peers/1";

/// The key that all candidates of a lock share. It never leaves the process: a peer proves that it knows the key by a
/// code over what it says and over a number that the follower has drawn. `Debug` does not show the key.
#[derive(Clone)]
pub struct SharedKey(Hmac<Sha256>);

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey(…)")
    }
}

impl SharedKey {
    /// Takes a key of 32 to 4096 bytes. White space at its ends does not count.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the key is too short or too long. The error does not contain the key.
    pub fn new(key: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
        Self::of(key.as_ref(), "")
    }

    fn of(key: &[u8], place: &str) -> Result<Self, ConfigError> {
        let key = key.trim_ascii();
        let wrong = || {
            let (shortest, longest) = (LENGTHS.start(), LENGTHS.end());
            let length = key.len();
            let problem = format!(
                "{place}has {length} bytes, and not {shortest} to {longest}; make a key with `openssl rand -hex 32`"
            );
            ConfigError::new("key", problem)
        };
        if !LENGTHS.contains(&key.len()) {
            return Err(wrong());
        }
        Hmac::new_from_slice(key).map(Self).map_err(|_| wrong())
    }

    /// Reads a key from a file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the file cannot be read, or if its content is no key.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let mut key = Vec::new();
        let limit = u64::try_from(*LENGTHS.end()).unwrap_or(u64::MAX) + 3;
        secret::open(path)
            .and_then(|file| file.take(limit).read_to_end(&mut key))
            .map_err(|error| ConfigError::new("key", format!("in {} cannot be read: {error}", path.display())))?;
        Self::of(&key, &format!("in {} ", path.display()))
    }

    /// Returns the code of these fields. Its length separates each field from the next.
    pub(crate) fn code<'a>(&self, fields: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut mac = self.0.clone();
        for field in [DOMAIN].into_iter().chain(fields) {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares a code in a time that does not depend on the number of equal characters.
    pub(crate) fn accepts<'a>(&self, code: &str, fields: impl IntoIterator<Item = &'a [u8]>) -> bool {
        self.code(fields).as_bytes().ct_eq(code.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_key_is_long_enough_and_never_shown() {
        for wrong in ["", "short", &"x".repeat(4097)] {
            let error = SharedKey::new(wrong).unwrap_err().to_string();
            assert!(error.starts_with("key has ") && (wrong.is_empty() || !error.contains(wrong)), "{error}");
        }
        let key = SharedKey::new(SECRET).unwrap();
        assert_eq!(format!("{key:?}"), "SharedKey(…)");
        let with_line_end = SharedKey::new(format!("{SECRET}\n")).unwrap();
        assert_eq!(key.code([&b"a"[..]]), with_line_end.code([&b"a"[..]]));
    }

    #[test]
    fn a_file_has_a_key_and_the_end_of_its_line_and_is_not_read_far_beyond() {
        let path = std::env::temp_dir().join(format!("leaderelection-peers-{}.key", std::process::id()));
        std::fs::write(&path, format!("{}\r\n", "x".repeat(4096))).unwrap();
        assert!(SharedKey::read(&path).is_ok());
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        let error = SharedKey::read(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("key in {} has 4099 bytes", path.display())), "{error}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_code_fits_its_own_fields_and_key_only() {
        let key = SharedKey::new(SECRET).unwrap();
        let code = key.code([&b"ab"[..], b"c"]);
        assert!(key.accepts(&code, [&b"ab"[..], b"c"]));
        for other in [[&b"a"[..], b"bc"], [b"ab", b"d"], [b"", b"abc"]] {
            assert!(!key.accepts(&code, other), "{other:?}");
        }
        assert!(!key.accepts(&code[1..], [&b"ab"[..], b"c"]) && !key.accepts("", [&b"ab"[..], b"c"]));
        let other = SharedKey::new(SECRET.replace('0', "1")).unwrap();
        assert!(!other.accepts(&code, [&b"ab"[..], b"c"]));
    }
}
