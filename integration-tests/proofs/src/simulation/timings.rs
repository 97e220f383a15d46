//! The timings of a candidate, and the moments at which they make it decide.

use std::time::Duration;

use super::clock::Rate;
use super::dice::Dice;

/// The usual limit for the duration of a request and its answer.
pub(crate) const QUICK: Duration = Duration::from_millis(60);

/// The least difference of lease and deadline that a configuration may have, in milliseconds.
const LEAST_MARGIN: u64 = 8;

/// The timings of a candidate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timings {
    pub(crate) lease: Duration,
    pub(crate) deadline: Duration,
    pub(crate) retry: Duration,
    pub(crate) timeout: Duration,
    /// The shortest pause between a candidate's reads while the leader renews.
    pub(crate) follower: Duration,
}

impl Timings {
    pub(crate) fn checked(self) -> leaderelection::Timings {
        let Self { lease, deadline, retry, timeout, .. } = self;
        leaderelection::Timings::new(lease, deadline, retry)
            .and_then(|timings| timings.with_request_timeout(timeout))
            .expect("scenarios have valid timings")
    }

    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let ms = Duration::from_millis;
        if dice.chance(0.5) {
            let follower = ms(dice.pick(&[2_000, 2_000, 2_000, 8_000]));
            return Self { lease: ms(15_000), deadline: ms(10_000), retry: ms(2_000), timeout: ms(2_500), follower };
        }
        let lease = ms(dice.pick(&[8_000, 15_000, 30_000, 60_000, 90_000]));
        let deadline = match dice.below(5) {
            0 => lease - ms(dice.pick(&[LEAST_MARGIN, 40, 300])),
            _ => whole_millis(lease * dice.pick(&[40, 50, 67, 80, 90]) / 100),
        };
        let retry = whole_millis(deadline * dice.pick(&[5, 5, 10, 20, 20, 25, 50, 80]) / 100);
        let timeout = whole_millis(deadline * dice.pick(&[10, 20, 25, 49]) / 100);
        let longest = lease.saturating_sub(retry.mul_f64(1.2) + ms(1)).max(retry);
        let follower = if dice.chance(0.6) { retry } else { dice.between(retry, longest) };
        Self { lease, deadline, retry, timeout, follower }
    }

    /// Returns `true` if a lease that every candidate has seen lasts, by the fastest clock, until the slowest
    /// leader has read the object once more.
    pub(crate) fn all_see_a_lease(&self, (slowest, fastest): (Rate, Rate)) -> bool {
        let Self { lease, retry, follower, .. } = *self;
        lease.mul_f64(1e6 / fastest as f64) > (follower + retry.mul_f64(2.3) + QUICK * 8).mul_f64(1e6 / slowest as f64)
    }

    /// Returns `true` if lease / deadline is less than that of `other`.
    pub(crate) fn narrower_than(&self, other: &Self) -> bool {
        self.lease.as_millis() * other.deadline.as_millis() < other.lease.as_millis() * self.deadline.as_millis()
    }

    /// Draws rates whose ratio is at most lease / deadline, and often exactly that.
    pub(crate) fn bounded_rates(&self, dice: &mut Dice) -> (Rate, Rate) {
        let slowest = dice.pick(&[1_000_000, 1_000_000, 800_000, 1_234_567]);
        let fastest_allowed = u128::from(slowest) * self.lease.as_millis() / self.deadline.as_millis();
        let fastest_allowed = Rate::try_from(fastest_allowed).unwrap_or(slowest);
        match dice.below(4) {
            0 => (slowest, slowest),
            1 => (slowest, dice.within(slowest, fastest_allowed)),
            _ => (slowest, fastest_allowed),
        }
    }

    /// Draws a duration after which the protocol has to decide, or one that differs by a millisecond.
    fn corner(&self, dice: &mut Dice) -> Duration {
        const STEP: Duration = Duration::from_millis(1);
        let Timings { lease, deadline, retry, timeout, .. } = *self;
        let exactly = dice.pick(&[
            Duration::ZERO,
            retry,
            timeout,
            timeout * 2,
            deadline - timeout,
            deadline - retry,
            deadline,
            lease - deadline,
            lease - timeout,
            lease,
            lease + retry,
        ]);
        match dice.below(3) {
            0 => exactly.saturating_sub(STEP),
            1 => exactly,
            _ => exactly + STEP,
        }
    }

    /// Draws a corner or any duration up to `longest`, each with probability one half.
    pub(crate) fn delay(&self, dice: &mut Dice, longest: Duration) -> Duration {
        if dice.chance(0.5) { self.corner(dice).min(longest) } else { dice.up_to(longest) }
    }
}

fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
