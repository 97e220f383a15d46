//! What one seed is about.

use std::time::Duration;

use super::clock::Rate;
use super::dice::Dice;

/// Candidates in every run.
pub(super) const NODES: usize = 5;

/// How long a request and its answer usually take at most.
pub(super) const QUICK: Duration = Duration::from_millis(60);

/// The configuration that all candidates of a run share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timings {
    pub(super) lease: Duration,
    pub(super) deadline: Duration,
    pub(super) retry: Duration,
    pub(super) timeout: Duration,
}

/// The conditions of a run.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) timings: Timings,
    /// The slowest and the fastest rate of a clock.
    pub(super) rates: (Rate, Rate),
    /// Whether the ratio of the rates keeps to the bound under which leaders exclude each other.
    pub(super) clocks_bounded: bool,
    pub(super) trouble: Trouble,
    /// The first so many nodes use one name.
    pub(super) sharing_identity: usize,
    pub(super) new_identity_on_restart: bool,
    pub(super) reclaim_own_identity: bool,
    /// Versions that are a hash of the content, like most ETags, instead of a counter.
    pub(super) versions_by_content: bool,
    pub(super) callbacks_panic: bool,
    /// The object is deleted now and then. That is outside the promise; candidates that saw the lease
    /// must wait it out all the same, so nothing else happens and no candidate is new.
    pub(super) operator_deletes: bool,
    /// The leader is asked now and then to hand over to some node, whether that lives or not.
    pub(super) operator_transfers: bool,
}

/// How much goes wrong while things go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing, not even a crash; candidates do stop, start and step down.
    None,
    /// A request in fifty, and rarely more.
    Little,
    /// Everything.
    Much,
}

impl Trouble {
    /// The share of requests with which something goes wrong.
    pub(super) fn of_requests(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Little => 0.02,
            Self::Much => 0.25,
        }
    }
}

impl Scenario {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        let timings = Timings::draw(dice);
        let clocks_bounded = dice.chance(0.85);
        let rates = if clocks_bounded { timings.bounded_rates(dice) } else { (200_000, 4_000_000) };
        let sharing_identity = if dice.chance(0.2) { dice.pick(&[2, 3, NODES]) } else { 0 };
        let new_identity_on_restart = dice.chance(0.3);
        let trouble = dice.pick(&[Trouble::None, Trouble::Little, Trouble::Little, Trouble::Much, Trouble::Much]);
        let operator_deletes = trouble == Trouble::None && timings.all_see_a_lease(rates) && dice.chance(0.3);
        Self {
            timings,
            rates,
            clocks_bounded,
            trouble,
            sharing_identity,
            new_identity_on_restart,
            // client-go's behaviour, safe only for names that are stable and unique.
            reclaim_own_identity: sharing_identity == 0 && dice.chance(0.2),
            versions_by_content: dice.chance(0.5),
            callbacks_panic: dice.chance(0.2),
            operator_deletes,
            operator_transfers: !operator_deletes && dice.chance(0.3),
        }
    }

    /// After the last fault and the last straggling write, some candidate leads after no more than this.
    ///
    /// By a candidate's own clock, in the worst case: it was told just before to leave the store alone
    /// (for a lease, or for the eleven retry periods of a refused candidate) or to stand back after a
    /// step-down (a lease); a request under way is waited for (a timeout); a read is due after at most
    /// 2.2 retry periods and shows a write of which the candidate knew nothing (a timeout); that lease is
    /// waited out, with the spread of a tenth of a retry period; and one write wins (a timeout), be it
    /// this candidate's or the one that it collides with. If somebody was asked for who does not come, a
    /// lease more. The slowest clock makes it longest; a restart and the grain of the timers take less than
    /// a second.
    pub(super) fn longest_without_leader(&self) -> Duration {
        let Timings { lease, retry, timeout, .. } = self.timings;
        let told_to_wait = lease.max(retry * 11);
        let local = told_to_wait + timeout + retry.mul_f64(2.2) + timeout + lease * 2 + retry / 10 + timeout;
        local.mul_f64(1e6 / self.rates.0 as f64) + Duration::from_secs(1)
    }
}

impl Timings {
    fn draw(dice: &mut Dice) -> Self {
        let ms = Duration::from_millis;
        if dice.chance(0.5) {
            return Self { lease: ms(15_000), deadline: ms(10_000), retry: ms(2_000), timeout: ms(2_500) };
        }
        let lease = ms(dice.pick(&[8_000, 15_000, 30_000, 60_000, 90_000]));
        let deadline = match dice.below(5) {
            0 => lease - ms(300),
            _ => whole_millis(lease * dice.pick(&[40, 50, 67, 80, 90]) / 100),
        };
        let retry = whole_millis(deadline * dice.pick(&[5, 5, 10, 20, 20, 25, 50, 80]) / 100);
        let timeout = whole_millis(deadline * dice.pick(&[10, 20, 25, 49]) / 100);
        Self { lease, deadline, retry, timeout }
    }

    /// Whether a lease that every candidate has seen lasts, by the fastest clock, until the slowest leader
    /// has looked at the object once more.
    fn all_see_a_lease(&self, (slowest, fastest): (Rate, Rate)) -> bool {
        let Self { lease, retry, .. } = *self;
        lease.mul_f64(1e6 / fastest as f64) > (retry.mul_f64(3.3) + QUICK * 8).mul_f64(1e6 / slowest as f64)
    }

    /// Rates whose ratio is at most lease / deadline: often exactly that.
    fn bounded_rates(&self, dice: &mut Dice) -> (Rate, Rate) {
        let slowest = dice.pick(&[1_000_000, 1_000_000, 800_000, 1_234_567]);
        let fastest_allowed = u128::from(slowest) * self.lease.as_millis() / self.deadline.as_millis();
        let fastest_allowed = Rate::try_from(fastest_allowed).unwrap_or(slowest);
        match dice.below(4) {
            0 => (slowest, slowest),
            1 => (slowest, dice.within(slowest, fastest_allowed)),
            _ => (slowest, fastest_allowed),
        }
    }
}

fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
