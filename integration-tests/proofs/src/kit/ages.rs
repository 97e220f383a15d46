//! Time in a state: clocks keep their reading, and remembered moments move into the past, only as far as they matter.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::Visitor;

/// Moves all remembered moments into the past.
pub fn shift(passed: Duration) -> impl Visitor {
    struct Shift(Duration);

    impl Visitor for Shift {
        fn timer(&mut self, timer: &mut LocalInstant) {
            *timer = *timer - self.0;
        }

        fn moment(&mut self, moment: &mut LocalInstant) {
            *moment = *moment - self.0;
        }
    }

    Shift(passed)
}

/// A limit on ages: a timer that has fired counts as firing now, and the age of the longest time that matters counts as any
/// greater age. Writes that can neither be committed nor have been committed are forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Ages<'a> {
    /// The reading of the clock.
    pub now: LocalInstant,
    /// The greatest age that matters.
    pub oldest: Duration,
    /// The longest pause, if a node may do anything at any later moment in any case.
    pub longest_pause: Option<Duration>,
    /// The number of each write that a message reports, as only the order of such numbers matters.
    pub number: u64,
    /// The ids of the writes that may still be committed, or may be read.
    pub live_writes: &'a [&'a str],
}

impl Visitor for Ages<'_> {
    fn pause(&mut self, pause: &mut LocalInstant) {
        self.timer(pause);
        if let Some(longest) = self.longest_pause {
            *pause = (*pause).min(self.now + longest);
        }
    }

    fn timer(&mut self, timer: &mut LocalInstant) {
        *timer = (*timer).max(self.now);
    }

    fn moment(&mut self, moment: &mut LocalInstant) {
        *moment = (*moment).max(self.now - self.oldest);
    }

    fn number(&mut self, number: &mut u64) {
        *number = self.number;
    }

    fn may_commit(&mut self, write_id: &str) -> bool {
        self.live_writes.contains(&write_id)
    }
}
