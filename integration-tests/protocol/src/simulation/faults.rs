//! What becomes of a request on its way to the store and back.

use std::time::Duration;

use leaderelection::StoreErrorKind;

use super::dice::Dice;
use super::scenario::{QUICK, Scenario, Timings};

/// Decided when a request is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    /// After how long it reaches the store; `None` if it is lost.
    pub(super) arrives: Option<Duration>,
    /// How long after its first arrival it arrives a second time.
    pub(super) again: Option<Duration>,
    pub(super) reply: Reply,
    /// How long the answer takes; `None` if it is lost.
    pub(super) returns: Option<Duration>,
}

/// What the sender is told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    /// What the store did.
    Honest,
    /// What the store did when the request arrived for the second time.
    OfSecond,
    /// The store did it, and something on the way back says that it failed.
    Lie(Refusal),
    /// The store did not do it, and says so.
    Refuse(Refusal),
}

/// An error, and how long to leave the store alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Refusal {
    pub(super) kind: StoreErrorKind,
    pub(super) retry_after: Option<Duration>,
}

/// How a node's network is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Link {
    #[default]
    Up,
    /// Nothing goes out or comes in.
    Down,
    /// Requests go out; answers do not come in.
    Deaf,
}

/// How the whole store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outage {
    /// Nothing is done or answered.
    Silent,
    /// Nothing is done.
    Refusing(Refusal),
    /// Everything is done, and answered with an error.
    Lying(Refusal),
}

impl Fate {
    /// Soon enough for the request timeout and for a renewal, even by the fastest clock; and mostly soon.
    pub(super) fn good(scenario: &Scenario, dice: &mut Dice) -> Self {
        let Timings { deadline, retry, timeout, .. } = scenario.timings;
        let longest = timeout.min(deadline - retry).mul_f64(1e6 / scenario.rates.1 as f64);
        let longest = longest.saturating_sub(Duration::from_millis(5));
        let total = match dice.below(20) {
            0 if !scenario.operator_deletes => longest,
            1 if !scenario.operator_deletes => dice.up_to(longest),
            _ => dice.up_to(longest.min(QUICK)),
        };
        let arrives = dice.up_to(total);
        let returns = total.saturating_sub(arrives);
        Self { arrives: Some(arrives), again: None, reply: Reply::Honest, returns: Some(returns) }
    }

    /// Something goes wrong; at times in ways that make no difference.
    pub(super) fn bad(scenario: &Scenario, dice: &mut Dice) -> Self {
        let good = Self::good(scenario, dice);
        let Timings { lease, .. } = scenario.timings;
        let delay = dice.delay(&scenario.timings, lease * 2);
        match dice.below(9) {
            0 => Self { arrives: None, ..good },
            1 => Self { arrives: Some(delay), ..good },
            2 => Self { returns: None, ..good },
            3 => Self { returns: Some(delay), ..good },
            4 => Self { arrives: Some(delay), returns: None, ..good },
            5 => Self { reply: Reply::Lie(Refusal::draw(scenario, dice)), ..good },
            6 => Self { reply: Reply::Refuse(Refusal::draw(scenario, dice)), ..good },
            7 => Self { again: Some(dice.pick(&[Duration::ZERO, delay])), ..good },
            _ => {
                let soon = dice.up_to(Duration::from_millis(50));
                Self { again: Some(soon), reply: Reply::OfSecond, ..good }
            }
        }
    }
}

impl Refusal {
    pub(super) fn draw(scenario: &Scenario, dice: &mut Dice) -> Self {
        const OFTEN: [StoreErrorKind; 5] = [
            StoreErrorKind::Ambiguous,
            StoreErrorKind::Ambiguous,
            StoreErrorKind::Rejected,
            StoreErrorKind::Rejected,
            StoreErrorKind::Fatal,
        ];
        let kind = dice.pick(&OFTEN);
        let retry_after = (kind != StoreErrorKind::Fatal && dice.chance(0.2)).then(|| match dice.below(8) {
            0 => Duration::from_secs(3600),
            _ => dice.delay(&scenario.timings, scenario.timings.lease * 3),
        });
        Self { kind, retry_after }
    }
}

impl Outage {
    pub(super) fn draw(scenario: &Scenario, dice: &mut Dice) -> Self {
        match dice.below(4) {
            0 => Self::Silent,
            1 => Self::Refusing(Refusal::draw(scenario, dice)),
            _ => Self::Lying(Refusal::draw(scenario, dice)),
        }
    }
}
