//! The health check of an elector, like client-go's `Check`: a leader that has stopped renewing is unhealthy.

use std::sync::Arc;
use std::time::Duration;

use crate::handle::board::Reader;
use crate::handle::status::{LeaderHandle, Status};
use crate::handle::tuning::Tuning;

/// A check for a liveness probe: it fails when a leader has stopped renewing.
///
/// The check fails if a term is open and its last renewal is older than the lease duration plus a tolerated
/// delay. A term stays open until its work has ended. The check therefore also detects work that outlives its
/// lease, and a leader whose elector is no longer polled.
#[derive(Clone, Debug)]
pub struct HealthCheck {
    status: Reader<Status>,
    name: String,
    lease_duration: Duration,
    tolerated_delay: Duration,
    /// The current timings. `None` if they cannot change, as for the lock of a session: then `lease_duration` applies.
    tuning: Option<Arc<Tuning>>,
}

/// The error of a failed [`HealthCheck`]: the last renewal is too old.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to renew leadership of {name}: the last renewal is {age:?} old, more than lease_duration \
     ({lease_duration:?}) plus the tolerated delay ({tolerated_delay:?}); restart this process"
)]
pub struct Unhealthy {
    name: String,
    age: Duration,
    lease_duration: Duration,
    tolerated_delay: Duration,
}

impl HealthCheck {
    /// Creates the check of the elector that `handle` shows. `lease_duration` applies only if the handle has no tuning.
    pub(crate) fn new(
        handle: &LeaderHandle,
        name: String,
        lease_duration: Duration,
        tolerated_delay: Duration,
    ) -> Self {
        let (status, tuning) = (handle.status.clone(), handle.tuning.clone());
        Self { status, name, lease_duration, tolerated_delay, tuning }
    }

    /// The name of the elector: the name of its lock, unless
    /// [`name`](crate::LeaderElectionConfigBuilder::name) sets another.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Performs the check.
    ///
    /// # Errors
    ///
    /// [`Unhealthy`] if a term is open and its last renewal is too old.
    pub fn check(&self) -> Result<(), Unhealthy> {
        let Some(age) = self.status.read().term.as_ref().map(|term| term.renewal_age()) else { return Ok(()) };
        let Self { tolerated_delay, .. } = *self;
        let lease_duration =
            self.tuning.as_ref().map_or(self.lease_duration, |tuning| tuning.timings().lease_duration());
        if age <= lease_duration.saturating_add(tolerated_delay) {
            return Ok(());
        }
        Err(Unhealthy { name: self.name.clone(), age, lease_duration, tolerated_delay })
    }
}
