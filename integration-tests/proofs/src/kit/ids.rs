//! Ids of writes, and versions. Their names are no part of a state.

use std::hash::{Hash, Hasher};

use chrono::DateTime;
use leaderelection::Version;
use leaderelection::election::{Draw, Jitter, Stamp};

/// The first character of every id, and of nothing else.
pub(super) const MARK: u8 = b'#';

/// A source of ids without chance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ids(u32);

impl Ids {
    /// Returns an id that was never used.
    pub fn unused(&mut self) -> String {
        self.0 += 1;
        format!("{}{}", char::from(MARK), self.0)
    }

    /// Returns a version that was never used.
    pub fn version(&mut self) -> Version {
        Version::new(self.unused())
    }
}

impl Draw for Ids {
    fn jitter(&mut self) -> Jitter {
        Jitter::default()
    }

    fn stamp(&mut self) -> Stamp {
        Stamp { write_id: self.unused(), time: DateTime::UNIX_EPOCH }
    }
}

/// The number of ids that were used makes no difference.
impl Hash for Ids {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
