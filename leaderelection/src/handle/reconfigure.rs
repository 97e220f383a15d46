//! The method of a handle that changes the timings (rule 22).

use crate::handle::status::LeaderHandle;
use crate::timings::Timings;
use crate::timings::config_error::ConfigError;

impl LeaderHandle {
    /// Changes all four timings of the elector while it runs, if they pass the checks of
    /// [`build`](crate::LeaderElectionConfigBuilder::build). An elector that is not running applies them when it runs.
    ///
    /// A follower polls at the new pace at once. A leader renews at the new pace at once, and its next renewal carries
    /// the new lease duration. A shorter renew deadline applies at once: a leader whose last renewal is older than that
    /// stops leading. A longer renew deadline applies once a renewal with the new lease duration is committed, because
    /// other candidates wait only for the lease that the record shows.
    ///
    /// Change the timings of one candidate after the other. Leaders stay exclusive as long as no clock runs faster than
    /// another by a larger factor than the smallest `lease_duration / renew_deadline` of all candidates.
    ///
    /// # Errors
    ///
    /// The error names the first invalid field, its value, and the accepted values. Fails for the lock of a session,
    /// too: its timings cannot be changed. After an error, nothing has changed.
    pub fn reconfigure(&self, timings: Timings) -> Result<(), ConfigError> {
        let of_session =
            || ConfigError::new("timings", "of a session cannot be changed while it is open; open another");
        self.tuning.as_ref().ok_or_else(of_session)?.set(timings)
    }
}
