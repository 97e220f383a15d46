//! Sleeping through a suspend with timers that do not count it.

use std::time::Duration;

use leaderelection_protocol::LocalInstant;

/// The longest delay of the end of a [`SystemClock`](super::SystemClock)'s sleep after a suspend.
///
/// A sleeper that is woken after each suspend is woken within one slice. Any other sleeps in slices, and reads the
/// clock after each.
pub const SLICE: Duration = Duration::from_secs(1);

/// Waits between two attempts. No decision depends on the length of this wait, which a suspend makes longer.
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Sleeps until `now` shows `deadline`, and returns the time that it shows. For a [`Clock`](super::Clock) that counts suspend, with a `timer` that does not.
///
/// Such a timer stops while the machine is suspended, and afterwards ends late by its remaining time. Therefore the
/// clock is read again whenever a future of `resumed` completes, which it has to do within one [`SLICE`] after a
/// suspend. Where `resumed` returns `None`, no timer is set for longer than one slice.
pub async fn sleep_through_suspends<T, R>(
    now: impl Fn() -> LocalInstant,
    timer: impl Fn(Duration) -> T,
    resumed: impl Fn() -> Option<R>,
    deadline: LocalInstant,
) -> LocalInstant
where
    T: Future<Output = ()>,
    R: Future<Output = ()>,
{
    loop {
        let time = now();
        let left = deadline.saturating_since(time);
        if left.is_zero() {
            return time;
        }
        if left <= SLICE {
            timer(left).await;
            continue;
        }
        match resumed() {
            // The clock is read again, because the machine may have been suspended before the watch began.
            Some(resumed) => tokio::select! {
                biased;
                () = timer(deadline.saturating_since(now())) => {}
                () = resumed => {}
            },
            None => timer(SLICE).await,
        }
    }
}
