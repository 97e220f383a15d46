//! Phase-locked polling: the polls of another session follow the session's renewals (rule S8).
//!
//! A member counts a session's lease from the poll that first showed the last renewal. So a poll should come soon after each renewal.
//! Renewals are one retry period apart, so the member can predict them with its own clock:
//!
//! ```text
//!   renewals   |                |                |                |                |
//!   polls          x               x              x            -  x               x
//!                  each poll comes a little earlier, until one is too early; the next comes a little later
//! ```

use std::time::Duration;

use super::Visitor;
use crate::LocalInstant;

/// While a renewal is due, one poll is sent every `retry / LATE`, so the renewal is seen at most that late.
const LATE: u32 = 8;

/// Each poll moves towards the renewals by `retry / STEP`. The step is longer than the delay of timers, and so short that only one poll in
/// sixteen comes too early.
const STEP: u32 = 128;

/// The polls of another session, and what they show about the times of its renewals. Polls count from the send of their request, because
/// the answer shows everything that was committed before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rhythm {
    read_at: LocalInstant,
    /// The last renewal was not committed before this moment.
    renewed_from: LocalInstant,
    /// The moment of the first poll for the next renewal.
    due_at: LocalInstant,
}

impl Rhythm {
    /// Takes a poll that was sent at `now`. `before` is the rhythm before this poll. `is_renewed` is `false` if the
    /// poll shows the same as the poll before.
    pub fn after_poll(before: Option<&Self>, now: LocalInstant, is_renewed: bool, retry: Duration) -> Self {
        let renewed_from = match before {
            Some(before) if !is_renewed => return Self { read_at: now, ..before.clone() },
            // The last poll did not show this renewal yet, and renewals are a retry period apart.
            Some(before) => before.read_at.max(before.renewed_from + retry).min(now),
            None => LocalInstant::default(),
        };
        // Until the times of the renewals are known, any poll may show one.
        let is_known = before.is_some() && now.saturating_since(renewed_from) <= retry / 2;
        let due_at = if is_known { now + (retry - retry / STEP) } else { now };
        Self { read_at: now, renewed_from, due_at }
    }

    /// The moment of the next poll.
    pub fn next_poll(&self, retry: Duration) -> LocalInstant {
        if self.read_at < self.due_at {
            return self.due_at;
        }
        // A retry period of a few nanoseconds must not lead to polls without a pause.
        let step = (retry / LATE).max(Duration::from_nanos(1));
        // After so long without a renewal, the session has probably ended.
        let is_silent = self.read_at.saturating_since(self.due_at) > retry + step;
        self.read_at + if is_silent { retry } else { step }
    }

    /// Shows the moments to a model checker.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        let Self { read_at, renewed_from, due_at } = self;
        [read_at, renewed_from, due_at].into_iter().for_each(|at| visitor.pause(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Duration = Duration::from_secs(2);
    const HOUR: usize = 1_800;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A pseudo-random number below `limit`.
    fn noise(seed: u64, limit: u64) -> u64 {
        let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 33) % limit.max(1)
    }

    /// Returns the delays of an hour's polls that showed a renewal first, and the number of all polls. A session is renewed once in
    /// `period`, from `first` on. A request takes up to `slowest`, and timers are up to 2 ms late.
    fn reads(first: Duration, period: Duration, slowest: Duration) -> (Vec<Duration>, usize) {
        let millis = u64::try_from(slowest.as_millis()).unwrap();
        let committed: Vec<_> = (0..HOUR as u64)
            .map(|index| {
                let at = LocalInstant::default() + RETRY * 2 + first + period * u32::try_from(index).unwrap();
                at + ms(noise(index, millis + 2))
            })
            .collect();
        let (mut rhythm, mut at, mut shown): (Option<Rhythm>, _, usize) =
            (None, LocalInstant::default() + RETRY * 3, 0);
        let (mut delays, mut count) = (Vec::new(), 0);
        while shown < HOUR {
            let sent_at = at + ms(noise(count, 2));
            let answered_at = sent_at + ms(noise(count + 7, millis + 1));
            let seen = committed.partition_point(|committed| *committed <= answered_at);
            let is_renewed = seen != shown || rhythm.is_none();
            if is_renewed && seen > 0 {
                delays.push(answered_at.saturating_since(committed[seen - 1]));
            }
            shown = seen;
            let after = Rhythm::after_poll(rhythm.as_ref(), sent_at, is_renewed, RETRY);
            at = after.next_poll(RETRY).max(answered_at);
            (rhythm, count) = (Some(after), count + 1);
        }
        (delays, usize::try_from(count).unwrap())
    }

    #[test]
    fn reads_come_soon_after_renewals_whatever_the_first_read_met() {
        for (phase, slowest) in (0..200).flat_map(|phase| [0, 20, 60].map(|slowest| (phase, ms(slowest)))) {
            let (delays, count) = reads(ms(phase * 10), RETRY, slowest);
            let longest = delays[2..].iter().max().unwrap();
            let bound = RETRY / LATE + slowest * 2 + ms(4);
            assert!(*longest <= bound, "{longest:?} behind a renewal, from {phase}0 ms on, {slowest:?}");
            // One poll in sixteen comes too early. Slow requests make it one in six.
            let most = if slowest.is_zero() { HOUR + HOUR / 14 } else { HOUR + HOUR / 6 };
            assert!(count <= most, "{count} reads, from {phase}0 ms on, {slowest:?}");
        }
    }

    #[test]
    fn a_session_is_polled_by_its_own_retry_period() {
        for (period, most) in [(500, 0.3), (1_000, 0.6), (1_900, 1.2), (2_100, 2.2), (3_000, 6.5), (10_000, 14.0)] {
            let (delays, count) = reads(ms(700), ms(period), ms(20));
            let longest = delays[2..].iter().max().unwrap();
            assert!(*longest <= RETRY + ms(50), "{longest:?} behind a renewal, one in {period} ms");
            let reads = count as f64 / HOUR as f64;
            assert!(reads <= most, "{reads} reads for each renewal, one in {period} ms");
        }
    }

    #[test]
    fn a_session_without_renewals_is_polled_once_per_retry_period() {
        let mut rhythm = Rhythm::after_poll(None, LocalInstant::default() + RETRY, true, RETRY);
        let mut pauses = Vec::new();
        for _ in 0..13 {
            let next = rhythm.next_poll(RETRY);
            pauses.push(next.saturating_since(rhythm.read_at).as_millis());
            rhythm = Rhythm::after_poll(Some(&rhythm), next, false, RETRY);
        }
        assert_eq!(pauses, [250, 250, 250, 250, 250, 250, 250, 250, 250, 250, 2_000, 2_000, 2_000]);
    }
}
