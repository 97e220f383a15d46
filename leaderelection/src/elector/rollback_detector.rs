//! Detects a store that goes back in time. No decision depends on this.

/// The newest write of this elector that the store has shown.
///
/// A store that keeps its contract never shows an earlier write of an elector after a later one, because each write replaces the one
/// before. A store does so if it was restored, or has lost its last writes in a crash.
#[derive(Debug, Default)]
pub(super) struct RollbackDetector {
    /// The number of that write; 0 before the first.
    newest: u64,
}

impl RollbackDetector {
    /// Takes the number of the write that the object shows, if this elector made it, and returns `true` if the store
    /// has shown a later one before. Each step back is reported once.
    pub(super) fn has_rolled_back(&mut self, number: Option<u64>) -> bool {
        let Some(number) = number else { return false };
        number < std::mem::replace(&mut self.newest, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_back_is_reported_once() {
        let mut time = RollbackDetector::default();
        let reports = [3, 4, 4, 9, 4, 4, 5, 3, 10].map(|number| time.has_rolled_back(Some(number)));
        assert_eq!(reports, [false, false, false, false, true, false, false, true, false]);
    }

    #[test]
    fn writes_of_others_in_between_do_not_count() {
        let mut time = RollbackDetector::default();
        let reports = [Some(3), None, Some(4), None, Some(3)].map(|number| time.has_rolled_back(number));
        assert_eq!(reports, [false, false, false, false, true]);
    }
}
