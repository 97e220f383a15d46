//! Bounded change log with a total count: the locks that a session has released one by one, for its record (rule S6).

use std::collections::VecDeque;

/// The largest number of released locks in one record. A reader that has missed more releases scans all locks.
const MOST: usize = 256;

/// The releases of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Released {
    /// The number of all releases.
    pub count: u64,
    /// The hashes of the names of the last released locks, newest first.
    recent: VecDeque<u64>,
    /// The number of hashes at the end of `recent` that a committed renewal has reported.
    reported: usize,
    /// The number of hashes at the end of `recent` that the renewal in flight reports.
    reporting: usize,
}

impl Released {
    /// Adds the release of a lock, by the hash of its name.
    pub fn add(&mut self, lock: u64) {
        self.count += 1;
        self.recent.push_front(lock);
        self.recent.truncate(MOST);
    }

    /// Returns the hashes for the next renewal, newest first.
    pub fn report(&mut self) -> Vec<String> {
        self.reporting = self.recent.len();
        self.recent.iter().map(|lock| format!("{lock:016x}")).collect()
    }

    /// Takes a committed renewal. Releases that two renewals have reported are forgotten, so a reader may miss one renewal.
    pub fn renewed(&mut self) {
        let forgotten = self.reported.min(self.recent.len());
        self.recent.truncate(self.recent.len() - forgotten);
        self.reported = self.reporting.saturating_sub(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_renewals_tell_of_each_release() {
        let mut released = Released::default();
        released.add(1);
        assert_eq!(released.report(), ["0000000000000001"]);
        released.add(2);
        released.renewed();
        assert_eq!(released.report(), ["0000000000000002", "0000000000000001"]);
        released.renewed();
        assert_eq!(released.report(), ["0000000000000002"]);
        released.renewed();
        assert_eq!((released.report().len(), released.count), (0, 2));
        (0..300).for_each(|lock| released.add(lock));
        assert_eq!(released.report().len(), MOST);
    }
}
