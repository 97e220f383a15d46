//! The clocks of the store's servers, by which the store tells how old an object is (rule 19).

use std::time::Duration;

use super::clock::NodeClock;
use super::dice::Dice;

/// The grain of the times in HTTP.
const GRAIN: Duration = Duration::from_secs(1);

/// The clocks of the store's servers. They run at one rate, and disagree by the slack less one second at most.
#[derive(Debug)]
pub(super) struct StoreClocks {
    clock: NodeClock,
    /// The time by which the clock of each server is ahead of `clock`.
    ahead: [Duration; 3],
    dice: Dice,
}

impl StoreClocks {
    pub(super) fn draw(clock: NodeClock, slack: Duration, dice: &mut Dice) -> Self {
        let most = slack.saturating_sub(GRAIN);
        Self { clock, ahead: [Duration::ZERO, most, dice.up_to(most)], dice: dice.fork() }
    }

    /// The time by the clock of some server, as `Date` and `Last-Modified` tell it.
    pub(super) fn header(&mut self) -> Duration {
        let local = self.clock.local_at(self.clock.true_now());
        let time = Duration::from_nanos(local.as_nanos()) + self.dice.pick(&self.ahead);
        Duration::from_secs(time.as_secs())
    }
}
