//! The parts of a lock that go away and come back while it is watched.

use std::convert::Infallible;
use std::time::Duration;

use crate::lock::OperatorLock;
use crate::lock::view::View;
use crate::output::Output;
use crate::survey::parts::{self, Part};

/// The polls of the lock after which its parts are read one by one. The lock itself is told by most of them.
const EVERY: u32 = 10;

/// Tells which parts are away, and then each change. Never completes. A part that does not answer does not delay the lock.
pub(super) async fn follow(
    lock: &OperatorLock,
    whole: &View,
    interval: Duration,
    request_timeout: Duration,
    output: &Output,
) -> Infallible {
    let mut away: Vec<bool> = Vec::new();
    loop {
        let parts = parts::of(lock, whole, request_timeout).await;
        if parts.is_empty() {
            std::future::pending().await
        }
        for (part, was_away) in parts.iter().zip(away.into_iter().chain(std::iter::repeat(false))) {
            match part.is_away() {
                true if !was_away => output.say(part),
                false if was_away => output.say(format_args!("{}: this part is back", part.view.lock)),
                _ => {}
            }
        }
        away = parts.iter().map(Part::is_away).collect();
        tokio::time::sleep(interval.saturating_mul(EVERY)).await;
    }
}
