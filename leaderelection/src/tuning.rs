//! The timings of an elector, which may change while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::config::{LeaderElectionConfig, RELEASE_PATIENCE};
use crate::config_error::ConfigError;
use crate::election::Rules;
use crate::status::LeaderHandle;
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

    fn set(&self, timings: Timings) -> Result<(), ConfigError> {
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

impl LeaderHandle {
    /// Changes the timings of the elector while it runs, by the same rules as
    /// [`build`](crate::LeaderElectionConfigBuilder::build). All four durations are replaced.
    ///
    /// A candidate polls at the new pace at once. A leader renews at the new pace at once, and its next renewal carries the
    /// new lease duration. A shorter renew deadline counts at once: a leader whose last renewal is older stops leading. A
    /// longer renew deadline counts once a renewal with the new lease duration has landed, because other candidates wait
    /// for the lease that the record shows. An elector that does not run takes the timings when it next runs.
    ///
    /// Change the timings at one candidate after the other. Candidates with different timings may compete, and leaders
    /// stay exclusive as long as each pair of lease duration and renew deadline keeps to the bound of the clocks.
    ///
    /// # Errors
    ///
    /// The error names the first invalid field, its value, and the accepted values. Nothing has changed then. The timings
    /// of a lock that a session holds are those of the session, and cannot be changed.
    pub fn reconfigure(&self, timings: Timings) -> Result<(), ConfigError> {
        let of_session =
            || ConfigError::new("timings", "of a session cannot be changed while it is open; open another");
        self.tuning().ok_or_else(of_session)?.set(timings)
    }
}
