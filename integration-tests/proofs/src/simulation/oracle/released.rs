//! The check of a release that enough of several locks show: whoever can read it takes the lock.

use super::knowledge::Oracle;
use super::property::Property;
use crate::phase::Phase;
use crate::simulation::names::{ProcessId, Sent};

impl Oracle {
    /// Notes since when enough locks show a release for everybody. Where other things go wrong, a lock may have been silent for a
    /// candidate, which then polls without it.
    pub(super) fn note_released_locks(&mut self, Phase { parts, needs }: Phase) {
        // A lock that a term has not reached says nothing of its end (rule M6).
        let newest = parts.iter().filter_map(|part| self.halves[*part].token()).max();
        let is_released = |part: &&usize| {
            let half = &self.halves[**part];
            half.is_released_for_all() && half.token() == newest
        };
        let released = parts.iter().filter(is_released).count();
        let is_released = self.scenario.refuses_releases.is_some() && released >= needs;
        let since = self.rollout.released_since.unwrap_or(self.timeline.now);
        self.rollout.released_since = is_released.then_some(since);
    }

    /// Notes what a read has shown that was sent after the release. Whoever has led leaves a free lock to others for a while.
    pub(super) fn note_release_in_read(&mut self, process: ProcessId) {
        let seen = &mut self.processes[process].seen;
        let has_led = seen.committed.is_some();
        seen.may_take_since = self.rollout.released_since.filter(|since| *since < seen.asked_at && !has_led);
    }

    /// Checks that a candidate takes what its last read has shown as released, and reads no further.
    pub(super) fn check_takes_what_is_released(&mut self, process: ProcessId, sent: Sent) {
        let seen = &mut self.processes[process].seen;
        let shown = seen.may_take_since.take();
        if sent != Sent::Read {
            return;
        }
        seen.asked_at = self.timeline.now;
        let is_left = shown.is_some() && shown == self.rollout.released_since;
        self.timeline.demand(!is_left, Property::TakesWhatIsReleased, || {
            let since = shown.unwrap_or_default().as_secs_f64();
            format!("p{process} reads again, and does not take the lock, which is released since {since:.3}s")
        });
    }
}
