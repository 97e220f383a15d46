//! The faults of requests, networks and the store.

use std::time::Duration;

use leaderelection::election::Failure;
use leaderelection::{StoreError, StoreErrorKind};

use super::dice::Dice;
use super::scenario::Scenario;
use super::timings::{QUICK, Timings};

/// The number of earlier states that a false answer may show.
pub(crate) const REMEMBERED_STATES: usize = 3;

/// The fate of a request, decided when the request is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    /// The time until the request reaches the store; `None` if the request is lost.
    pub(crate) arrives: Option<Duration>,
    /// The time from the first arrival to a second arrival.
    pub(crate) again: Option<Duration>,
    pub(crate) reply: Reply,
    /// The duration of the answer's way back; `None` if the answer is lost.
    pub(crate) returns: Option<Duration>,
}

/// The answer to the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// The true result.
    Honest,
    /// The true result of the second arrival.
    OfSecond,
    /// The store carried out the request, but the answer reports a failure.
    Lie(Failure),
    /// The store did not carry out the request, and says so.
    Refuse(Failure),
    /// The answer tells of a state that the object does not have.
    False(Falsehood),
}

/// A false answer, as from a cache or a broken proxy. A write is answered with a conflict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Falsehood {
    /// A write is carried out although the answer is a conflict.
    pub(crate) applied: bool,
    /// A read shows the state that was replaced by so many later ones; `None` if it shows no object.
    pub(crate) age: Option<usize>,
}

/// The answer to a write whose condition does not hold.
pub(crate) const CONFLICT: Failure = Failure { kind: StoreErrorKind::Conflict, retry_after: None };

/// The state of a node's network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    #[default]
    Up,
    /// No request leaves, and no answer arrives.
    Down,
    /// Requests leave, but no answer arrives.
    Deaf,
}

/// The kind of an outage of the whole store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outage {
    /// No request is carried out or answered.
    Silent,
    /// No request is carried out.
    Refusing(Failure),
    /// Every request is carried out, and answered with an error.
    Lying(Failure),
}

impl Fate {
    /// Draws a fault for such a share of the requests, and a good answer for the others.
    pub(crate) fn draw(share: f64, scenario: &Scenario, dice: &mut Dice) -> Self {
        if dice.chance(share) { Self::bad(scenario, dice) } else { Self::good(scenario, dice) }
    }

    /// Draws an answer that arrives before the request timeout and in time for a renewal, even by the fastest
    /// clock. Most answers arrive quickly.
    fn good(scenario: &Scenario, dice: &mut Dice) -> Self {
        let longest = Self::longest(scenario);
        let total = match dice.below(20) {
            0 if !scenario.operator_deletes => longest,
            1 if !scenario.operator_deletes => dice.up_to(longest),
            _ => dice.up_to(longest.min(QUICK / scenario.parts())),
        };
        let arrives = dice.up_to(total);
        let returns = total.saturating_sub(arrives);
        Self { arrives: Some(arrives), again: None, reply: Reply::Honest, returns: Some(returns) }
    }

    /// The longest time of a request that is answered in time.
    fn longest(scenario: &Scenario) -> Duration {
        let longest = scenario.all_timings().map(|timings| timings.timeout.min(timings.deadline - timings.retry)).min();
        let longest = longest.unwrap_or_default().mul_f64(1e6 / scenario.rates.1 as f64);
        longest.saturating_sub(Duration::from_millis(5)) / scenario.parts()
    }

    /// Returns the fate of a request to a lock that is slower than all others.
    pub(crate) fn slowed(self, scenario: &Scenario) -> Self {
        Self { arrives: self.arrives.map(|arrives| arrives + Self::longest(scenario) / 2), ..self }
    }

    /// Returns the fate of a request to a lock that refuses it.
    pub(crate) fn refused(self) -> Self {
        Self { reply: Reply::Refuse(Failure { kind: StoreErrorKind::Rejected, retry_after: None }), ..self }
    }

    /// Draws an answer that arrives quickly.
    pub(crate) fn quick(dice: &mut Dice) -> Self {
        let [arrives, returns] = [(); 2].map(|()| Some(dice.up_to(QUICK / 2)));
        Self { arrives, again: None, reply: Reply::Honest, returns }
    }

    /// Draws a fault, which may have no effect.
    fn bad(scenario: &Scenario, dice: &mut Dice) -> Self {
        let good = Self::good(scenario, dice);
        let Timings { lease, .. } = scenario.timings;
        let delay = scenario.timings.delay(dice, lease * 2);
        match dice.below(10) {
            0 => Self { arrives: None, ..good },
            1 => Self { arrives: Some(delay), ..good },
            2 => Self { returns: None, ..good },
            3 => Self { returns: Some(delay), ..good },
            4 => Self { arrives: Some(delay), returns: None, ..good },
            5 => Self { reply: Reply::Lie(refusal(scenario, dice)), ..good },
            6 => Self { reply: Reply::Refuse(refusal(scenario, dice)), ..good },
            7 => Self { again: Some(dice.pick(&[Duration::ZERO, delay])), ..good },
            8 => Self { reply: Reply::False(Falsehood::draw(dice)), ..good },
            _ => {
                let soon = dice.up_to(Duration::from_millis(50));
                Self { again: Some(soon), reply: Reply::OfSecond, ..good }
            }
        }
    }
}

/// Draws the times after which a message arrives. A share of the messages is lost, late, or duplicated.
pub(crate) fn delivery_times(share: f64, timings: &Timings, dice: &mut Dice) -> Vec<Duration> {
    match dice.chance(share).then(|| dice.below(3)) {
        None => vec![dice.up_to(QUICK)],
        Some(0) => Vec::new(),
        Some(1) => vec![timings.delay(dice, timings.lease * 2)],
        Some(_) => vec![timings.delay(dice, timings.retry * 2), timings.delay(dice, timings.retry * 2)],
    }
}

impl Falsehood {
    fn draw(dice: &mut Dice) -> Self {
        let age = if dice.chance(0.25) { None } else { Some(dice.pick(&[1, 1, 2, REMEMBERED_STATES])) };
        Self { applied: dice.chance(0.5), age }
    }
}

/// Draws an error, and the time for which the store asks clients to send nothing.
fn refusal(scenario: &Scenario, dice: &mut Dice) -> Failure {
    use StoreErrorKind::{Ambiguous, Fatal, Rejected};
    let kind = dice.pick(&[Ambiguous, Ambiguous, Rejected, Rejected, Fatal]);
    let retry_after = dice.chance(0.2).then(|| match dice.below(8) {
        0 => Duration::from_secs(3600),
        _ => scenario.timings.delay(dice, scenario.timings.lease * 3),
    });
    Failure { kind, retry_after }
}

/// Returns a failure as the store tells it.
pub(crate) fn error(Failure { kind, retry_after }: Failure) -> StoreError {
    StoreError::new(kind, "the simulated store failed").with_retry_after(retry_after)
}

impl Outage {
    pub(crate) fn draw(scenario: &Scenario, dice: &mut Dice) -> Self {
        match dice.below(4) {
            0 => Self::Silent,
            1 => Self::Refusing(refusal(scenario, dice)),
            _ => Self::Lying(refusal(scenario, dice)),
        }
    }
}
