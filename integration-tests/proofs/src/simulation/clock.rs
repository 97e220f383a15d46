//! The clock of a node, with a rate and a wall time of its own, and those of the store.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use leaderelection::clock::{Clock, LocalInstant, SLICE, sleep_through_suspends};
use tokio::time::Instant;

use super::dice::Dice;

/// A clock's rate in millionths: 1,000,000 is the rate of true time.
pub(crate) type Rate = u64;

const TRUE_RATE: Rate = 1_000_000;

/// The time that has passed in the simulation, which no node knows.
pub(crate) type TrueTime = Duration;

/// The whole course of a clock, drawn in advance, so that the clock can be read exactly for any moment.
#[derive(Debug)]
pub(crate) struct Course {
    pieces: Vec<Piece>,
}

/// A clock of a node in a runtime whose time is simulated.
#[derive(Clone, Debug)]
pub(super) struct NodeClock(Arc<Ticking>);

#[derive(Debug)]
struct Ticking {
    origin: Instant,
    course: Course,
    /// The time, by the node's clock, during which the node's timers stood still while the clock went on.
    timers_lost: AtomicU64,
}

/// A period in which the clock has one rate.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: u64,
    local: u64,
    rate: Rate,
    wall: DateTime<Utc>,
    /// The wall clock stands still. To an occasional reader, a wall clock that is repeatedly set back looks the
    /// same.
    wall_stands: bool,
}

impl Course {
    /// Draws a clock that changes its rate, between `slowest` and `fastest`, a few times in `length`.
    pub(crate) fn draw(length: Duration, (slowest, fastest): (Rate, Rate), dice: &mut Dice) -> Self {
        let changes = dice.pick(&[0, 0, 1, 4, 12]);
        let mut starts: Vec<Duration> = (0..changes).map(|_| dice.up_to(length)).collect();
        starts.push(Duration::ZERO);
        starts.sort_unstable();
        let mut pieces: Vec<Piece> = Vec::with_capacity(starts.len());
        for start in starts {
            let from = nanos(start);
            let local = match pieces.last() {
                Some(piece) => piece.local_at(from),
                None if dice.chance(0.5) => 0,
                None => nanos(dice.up_to(Duration::from_secs(1_000_000))),
            };
            let rate = match dice.below(4) {
                0 => slowest,
                1 => fastest,
                _ => dice.within(slowest, fastest),
            };
            pieces.push(Piece { from, local, rate, wall: draw_wall(dice), wall_stands: dice.chance(0.2) });
        }
        Self { pieces }
    }

    /// Returns the clock's reading at a moment of true time.
    pub(crate) fn local_at(&self, at: TrueTime) -> LocalInstant {
        let at = nanos(at);
        LocalInstant::from_nanos(self.piece(|piece| piece.from <= at).local_at(at))
    }

    /// Returns the first moment at which the clock shows `local` or more.
    pub(crate) fn true_at(&self, local: LocalInstant) -> TrueTime {
        let at = self.piece(|piece| piece.local <= local.as_nanos()).true_at(local.as_nanos());
        let shown_at = |at: u64| self.local_at(Duration::from_nanos(at));
        // A clock at the slowest rate advances once in five nanoseconds.
        debug_assert!(
            shown_at(at) >= local && (at == 0 || shown_at(at.saturating_sub(5)) < local),
            "{local:?} at {at}"
        );
        Duration::from_nanos(at)
    }

    /// Returns the wall time that the clock shows at a moment of true time.
    pub(crate) fn wall_at(&self, at: TrueTime) -> DateTime<Utc> {
        let at = nanos(at);
        let piece = self.piece(|piece| piece.from <= at);
        if piece.wall_stands { piece.wall } else { piece.wall + Duration::from_nanos(at - piece.from) }
    }

    fn piece(&self, has_begun: impl Fn(&Piece) -> bool) -> &Piece {
        self.pieces.iter().rev().find(|piece| has_begun(piece)).unwrap_or(&self.pieces[0])
    }
}

impl NodeClock {
    /// Draws a clock that changes its rate, between the slowest and the fastest, a few times in `length`.
    pub(super) fn draw(origin: Instant, length: Duration, rates: (Rate, Rate), dice: &mut Dice) -> Self {
        Self(Arc::new(Ticking { origin, course: Course::draw(length, rates, dice), timers_lost: AtomicU64::new(0) }))
    }

    pub(super) fn true_now(&self) -> TrueTime {
        self.0.origin.elapsed()
    }

    pub(super) fn local_at(&self, at: TrueTime) -> LocalInstant {
        self.0.course.local_at(at)
    }

    pub(super) fn true_at(&self, local: LocalInstant) -> TrueTime {
        self.0.course.true_at(local)
    }

    /// Delays every pending timer by the time since `since`, as a suspend does on some systems.
    pub(super) fn timers_stood_since(&self, since: TrueTime) {
        let lost = self.now().saturating_since(self.local_at(since));
        self.0.timers_lost.fetch_add(nanos(lost), Ordering::Relaxed);
    }

    fn timers_lost(&self) -> Duration {
        Duration::from_nanos(self.0.timers_lost.load(Ordering::Relaxed))
    }

    /// Completes when the node has run for this time by its clock, suspended time excluded.
    async fn timer(&self, lasts: Duration) {
        let (end, lost_before) = (self.now() + lasts, self.timers_lost());
        loop {
            let end = self.true_at(end + (self.timers_lost() - lost_before));
            if self.true_now() >= end {
                return;
            }
            tokio::time::sleep_until(self.0.origin + end).await;
        }
    }

    /// Completes at the end of the first slice in which the timers stood still.
    fn resumed(&self) -> impl Future<Output = ()> {
        let lost_before = self.timers_lost();
        async move {
            while self.timers_lost() == lost_before {
                self.timer(SLICE).await;
            }
        }
    }
}

impl Piece {
    fn local_at(&self, at: u64) -> u64 {
        self.local + scale(at - self.from, self.rate, TRUE_RATE, false)
    }

    fn true_at(&self, local: u64) -> u64 {
        self.from + scale(local.saturating_sub(self.local), TRUE_RATE, self.rate, true)
    }
}

#[async_trait]
impl Clock for NodeClock {
    fn now(&self) -> LocalInstant {
        self.local_at(self.true_now())
    }

    fn wall_time(&self) -> DateTime<Utc> {
        self.0.course.wall_at(self.true_now())
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        sleep_through_suspends(|| self.now(), |lasts| self.timer(lasts), || Some(self.resumed()), deadline).await
    }
}

/// The resolution of the times in HTTP.
const GRAIN: Duration = Duration::from_secs(1);

/// The clocks of the store's servers, by which the store tells how old an object is (rule 19). They run at one rate, and disagree by the slack less one second at most.
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

/// Lets time pass while nothing runs. Timers that end in that time end at its end.
pub(super) fn stand_still(lasts: Duration) {
    // The first poll moves the clock. The rest of the future only lets other tasks run, which run anyway.
    let _ = pin!(tokio::time::advance(lasts)).poll(&mut Context::from_waker(Waker::noop()));
}

/// Draws a wall time that is right, or wrong by seconds to decades.
fn draw_wall(dice: &mut Dice) -> DateTime<Utc> {
    let right = DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default();
    let most = dice.pick(&[0, 5, 60, 86_400, 1_000_000_000]);
    let wrong_by = i64::try_from(dice.within(0, 2 * most)).unwrap_or(0) - i64::try_from(most).unwrap_or(0);
    right + TimeDelta::seconds(wrong_by)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn scale(value: u64, numerator: u64, denominator: u64, round_up: bool) -> u64 {
    let product = u128::from(value) * u128::from(numerator);
    let denominator = u128::from(denominator);
    let scaled = if round_up { product.div_ceil(denominator) } else { product / denominator };
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
