//! Detects a store that shows an earlier state again. No decision depends on this.

/// Remembers the last write of this elector that the store has shown.
///
/// A store that keeps its contract never shows an earlier write of an elector after a later one, because each write
/// replaces the one before. A store that was restored, or has lost its last writes in a crash, may do so.
#[derive(Debug, Default)]
pub(super) struct RollbackDetector {
    /// The number of the last shown write; 0 before the first one.
    last: u64,
}

impl RollbackDetector {
    /// Takes the number of the write that the object shows, or `None` if another elector made it. Returns `true` if the
    /// store showed a later write before. Each step back is reported once.
    pub(super) fn has_rolled_back(&mut self, number: Option<u64>) -> bool {
        let Some(number) = number else { return false };
        number < std::mem::replace(&mut self.last, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_back_is_reported_once() {
        let mut detector = RollbackDetector::default();
        let reports = [3, 4, 4, 9, 4, 4, 5, 3, 10].map(|number| detector.has_rolled_back(Some(number)));
        assert_eq!(reports, [false, false, false, false, true, false, false, true, false]);
    }

    #[test]
    fn writes_of_others_in_between_do_not_count() {
        let mut detector = RollbackDetector::default();
        let reports = [Some(3), None, Some(4), None, Some(3)].map(|number| detector.has_rolled_back(number));
        assert_eq!(reports, [false, false, false, false, true]);
    }
}
