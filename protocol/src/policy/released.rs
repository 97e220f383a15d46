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
        // The hash that leaves was the oldest, which both counts begin with.
        if self.recent.len() > MOST {
            self.recent.pop_back();
            self.reported = self.reported.saturating_sub(1);
            self.reporting = self.reporting.saturating_sub(1);
        }
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

    #[test]
    fn a_full_log_forgets_no_release_that_was_reported_once() {
        let mut released = Released::default();
        (0..MOST as u64).for_each(|lock| released.add(lock));
        released.report();
        released.renewed();
        // Fifty of those that were reported make room.
        (1000..1050).for_each(|lock| released.add(lock));
        released.report();
        released.renewed();
        assert_eq!(released.report().len(), 50, "those that two renewals have reported are forgotten, and no others");
        released.renewed();
        assert_eq!(released.report().len(), 0);
    }
}
