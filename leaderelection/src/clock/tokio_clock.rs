//! A clock that tests can pause.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Clock, LocalInstant};

/// tokio's clock, for tests that pause and advance it. It does not count a suspend, so do not use it in production.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: tokio::time::Instant,
}

impl TokioClock {
    /// Creates a clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: tokio::time::Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for TokioClock {
    fn now(&self) -> LocalInstant {
        LocalInstant::default() + self.start.elapsed()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + self.start.elapsed()
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        // One timer for the whole sleep is enough, because the timers follow this clock.
        loop {
            let now = self.now();
            let left = deadline.saturating_since(now);
            if left.is_zero() {
                return now;
            }
            tokio::time::sleep(left).await;
        }
    }
}
