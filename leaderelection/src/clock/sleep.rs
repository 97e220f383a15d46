//! A sleep that ends on time after a suspend, although timers do not count the suspend.

use std::time::Duration;

use leaderelection_protocol::LocalInstant;

/// How late a sleep by [`SystemClock`](super::SystemClock) may end because of a suspend.
pub const SLICE: Duration = Duration::from_secs(1);

/// Waits between two attempts. A suspend makes this wait longer, so no decision may depend on its length.
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Sleeps until `now()` reaches `deadline`, and returns that time. `now` counts a suspend, and `timer` does not.
///
/// Such a timer stops during a suspend, and so ends too late. Therefore `now` is called again when a future of
/// `resumed` completes. This future must complete within one [`SLICE`] after a suspend. If `resumed` returns `None`, no
/// timer is set for longer than one slice, and `now` is called after each.
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
            // `now` is called again, because `resumed` does not report a suspend that was before its call.
            Some(resumed) => tokio::select! {
                biased;
                () = timer(deadline.saturating_since(now())) => {}
                () = resumed => {}
            },
            None => timer(SLICE).await,
        }
    }
}
