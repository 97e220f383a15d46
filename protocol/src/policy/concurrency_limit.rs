//! Congestion window: limits the number of requests in flight (rule S9). The limit is halved after a rejection, and doubles with each retry
//! period without one.

use std::time::Duration;

use super::Visitor;
use crate::LocalInstant;

/// Rejections do not reduce the limit below this.
const LEAST: usize = 8;

/// Rejections within `retry / AT_ONCE` count once, because they answer requests that were sent together.
const AT_ONCE: u32 = 4;

/// Limits the requests in flight about locks and other sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConcurrencyLimit {
    /// The limit after the last rejection, and when that was; `None` if no rejection has an effect any more.
    shrunk: Option<(usize, LocalInstant)>,
}

impl ConcurrencyLimit {
    /// The limit at `now`, at most `most`. Forgets the last rejection once it has no effect.
    pub fn limit(&mut self, now: LocalInstant, most: usize, retry: Duration) -> usize {
        let limit = self.at(now, most, retry);
        self.shrunk.take_if(|_| limit == most);
        limit
    }

    /// The limit at `now`, which doubles with every retry period without a rejection, up to `most`.
    fn at(&self, now: LocalInstant, most: usize, retry: Duration) -> usize {
        let Some((number, since)) = self.shrunk else { return most };
        let periods = now.saturating_since(since).as_nanos() / retry.as_nanos().max(1);
        number.saturating_mul(1 << periods.min(16)).min(most)
    }

    /// Halves the limit after a rejection.
    pub fn refused(&mut self, now: LocalInstant, most: usize, retry: Duration) {
        if self.shrunk.is_none_or(|(_, since)| now >= since + retry / AT_ONCE) {
            let half = self.at(now, most, retry) / 2;
            self.shrunk = Some((half.max(LEAST.min(most)), now));
        }
    }

    /// Shows the moment of the last rejection to a model checker.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        self.shrunk.iter_mut().for_each(|(_, since)| visitor.pause(since));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Duration = Duration::from_secs(2);

    #[test]
    fn a_refusing_store_gets_half_and_then_twice_as_much_per_period() {
        let mut budget = ConcurrencyLimit::default();
        let at = |millis| LocalInstant::default() + Duration::from_millis(millis);
        // The answers to requests that were sent together count once.
        for millis in [0, 10, 499] {
            budget.refused(at(millis), 128, RETRY);
        }
        assert_eq!(budget.at(at(499), 128, RETRY), 64);
        (1..=8).for_each(|refusal| budget.refused(at(500 * refusal), 128, RETRY));
        assert_eq!(
            [0, 1_999, 2_000, 4_000, 7_999, 8_000].map(|later| budget.at(at(4_000 + later), 128, RETRY)),
            [8, 8, 16, 32, 64, 128]
        );
    }
}
