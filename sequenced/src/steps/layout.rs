//! The keys and the contents of the objects that one lock consists of.

use std::fmt;

use bytes::Bytes;

use leaderelection::{StoreError, StoreErrorKind};

/// The number of digits in a key: those of the largest number.
const DIGITS: usize = 20;

/// The end of every complete content.
const END: u8 = b'\n';

/// The number of a write. The first write has the number 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(u64);

impl Number {
    /// The number before the first.
    pub const ZERO: Self = Self(0);

    /// Creates the number.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number as an integer.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The number after this one, if there is one.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    /// Parses a version, which must have exactly the spelling of `Display`.
    pub(crate) fn from_version(version: &str) -> Option<Self> {
        version.parse().ok().map(Self).filter(|number| number.to_string() == version)
    }

    /// The key of this number in the folder of a lock.
    pub(crate) fn key(self, folder: &str) -> String {
        format!("{folder}{self:020}", self = self.0)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The folder of the lock at `key`.
pub(crate) fn folder(key: &str) -> String {
    format!("{key}/")
}

/// Splits the key of an object into the key of its lock and its number. Returns `None` for an object that no lock consists of.
pub(crate) fn split(key: &str) -> Option<(&str, Number)> {
    let (lock, digits) = key.rsplit_once('/')?;
    let number = Some(digits).filter(|digits| is_number(digits))?.parse().ok().map(Number)?;
    (number > Number::ZERO).then_some((lock, number))
}

fn is_number(part: &str) -> bool {
    part.len() == DIGITS && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Refuses a key whose objects could be taken for those of another lock, or could not be listed.
pub(crate) fn check(key: &str, object: impl FnOnce() -> String) -> Result<(), StoreError> {
    let problem = if key.is_empty() || key.starts_with('/') || key.ends_with('/') {
        "it is empty, or begins or ends with a slash"
    } else if key.split('/').any(is_number) {
        "a part of it has 20 digits, as the numbers of writes have"
    } else {
        return Ok(());
    };
    let message = format!("{}: the key {key:?} cannot be used: {problem}: choose another key", object());
    Err(StoreError::new(StoreErrorKind::Fatal, message))
}

/// Makes the content of an object whose body is complete. An empty body says that the object is deleted.
#[must_use]
pub fn complete(body: &[u8]) -> Bytes {
    [body, &[END]].concat().into()
}

/// Returns the body of a content, or `None` if the content is not complete.
pub(crate) fn body(content: &Bytes) -> Option<Bytes> {
    let body = content.len().checked_sub(1)?;
    (content[body] == END).then(|| content.slice(..body))
}
