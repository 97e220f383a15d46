//! The timings of an elector, which may change while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::config::{LeaderElectionConfig, RELEASE_PATIENCE};
use crate::config_error::ConfigError;
use crate::election::Rules;
use crate::timings::Timings;

/// The timings that an elector was told last, and what they have to suit.
#[derive(Debug)]
pub(crate) struct Tuning {
    longest_lease: Duration,
    follower_interval: Option<Duration>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    timings: Timings,
    /// `true` if the elector has not taken the timings up.
    is_new: bool,
}

impl Tuning {
    pub(crate) fn new(config: &LeaderElectionConfig) -> Self {
        Self {
            longest_lease: config.lock.max_lease_duration(),
            follower_interval: config.follower_interval,
            state: Mutex::new(State { timings: config.timings, is_new: false }),
            changed: Notify::new(),
        }
    }

    pub(crate) fn timings(&self) -> Timings {
        self.state().timings
    }

    pub(crate) fn set(&self, timings: Timings) -> Result<(), ConfigError> {
        timings.check_for(self.longest_lease, self.follower_interval)?;
        *self.state() = State { timings, is_new: true };
        self.changed.notify_one();
        Ok(())
    }

    /// Returns the timings if they are new.
    pub(crate) fn take(&self) -> Option<Timings> {
        let mut state = self.state();
        std::mem::take(&mut state.is_new).then_some(state.timings)
    }

    /// Waits for new timings. Cancellation safe.
    pub(crate) async fn next(&self) -> Timings {
        loop {
            if let Some(timings) = self.take() {
                return timings;
            }
            self.changed.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that could panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaderElectionConfig {
    /// This configuration with other timings, which suit it.
    pub(crate) fn with_timings(&self, timings: Timings) -> Self {
        let follower_interval = self.follower_interval.unwrap_or(timings.retry_period());
        let rules = Rules {
            lease_duration: timings.lease_duration(),
            renew_deadline: timings.renew_deadline(),
            retry_period: timings.retry_period(),
            follower_interval,
            release_patience: timings.request_timeout().saturating_mul(RELEASE_PATIENCE),
            ..(*self.rules).clone()
        };
        let limit = self.limit.clone().of_duration(timings.request_timeout());
        Self { rules: Arc::new(rules), timings, limit, ..self.clone() }
    }
}
