//! New timings by the handle of an elector.

use crate::handle::status::LeaderHandle;
use crate::timings::Timings;
use crate::timings::config_error::ConfigError;

impl LeaderHandle {
    /// Changes the timings of the elector while it runs, by the same rules as
    /// [`build`](crate::LeaderElectionConfigBuilder::build). All four durations are replaced.
    ///
    /// A candidate polls at the new pace at once. A leader renews at the new pace at once, and its next renewal carries the
    /// new lease duration. A shorter renew deadline counts at once: a leader whose last renewal is older stops leading. A
    /// longer renew deadline counts once a renewal with the new lease duration is committed, because other candidates wait
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
        self.tuning.as_ref().ok_or_else(of_session)?.set(timings)
    }
}
