//! Sleeping through a suspend with timers that do not count it.

use std::time::Duration;

use super::instant::LocalInstant;

/// The longest delay of the end of a [`SystemClock`](super::SystemClock)'s sleep after a suspend.
///
/// Shorter slices would wake an idle process more often. Longer slices would delay the news of a loss to a
/// leader that was suspended past its window: see [`sleep_in_slices`]. A second is half of the default retry
/// period, so a leader is woken once more between two renewals.
pub const SLICE: Duration = Duration::from_secs(1);

/// Sleeps until `now` shows `deadline`. For a [`Clock`](super::Clock) that counts suspend, with a `timer` that does not.
///
/// Such a timer stops while the machine is suspended, and afterwards ends late by its remaining time. Therefore
/// no timer is set for longer than one [`SLICE`], and the clock is read after each timer.
pub async fn sleep_in_slices<T>(now: impl Fn() -> LocalInstant, timer: impl Fn(Duration) -> T, deadline: LocalInstant)
where
    T: Future<Output = ()>,
{
    loop {
        let left = deadline.saturating_since(now());
        if left.is_zero() {
            return;
        }
        timer(left.min(SLICE)).await;
    }
}
