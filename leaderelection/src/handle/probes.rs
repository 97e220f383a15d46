//! The answers to an orchestrator's probes, like client-go's `HealthzAdaptor`.

#[cfg(feature = "tower")]
mod service;

use crate::handle::health::HealthCheck;
use crate::handle::status::LeaderHandle;

/// Answers the probes of an orchestrator, in any HTTP server. With the feature `tower`, this type is a service: in
/// axum, `Router::new().fallback_service(probes)`.
///
/// ```
/// # use std::time::Duration;
/// # use leaderelection::{DefaultLeaderElector, Elector, LeaderElectionConfig, MemoryLock, MemoryStore, Probes};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
/// # let elector = DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).build()?);
/// let probes = Probes::new(elector.handle(), elector.health_check(Duration::from_secs(20)));
/// assert_eq!(probes.answer("/healthz"), (200, "ok".to_owned()));
/// assert_eq!(probes.answer("/readyz").0, 503, "the elector has not run");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Probes {
    handle: LeaderHandle,
    health: HealthCheck,
}

impl Probes {
    /// Combines the handle and the health check of one elector.
    #[must_use]
    pub fn new(handle: LeaderHandle, health: HealthCheck) -> Self {
        Self { handle, health }
    }

    /// Returns the status code and the text of the answer to a GET of this path.
    ///
    /// | path | 200 | otherwise |
    /// |---|---|---|
    /// | `/healthz` | unless [`HealthCheck::check`] fails | 500 |
    /// | `/readyz` | once the elector has seen a record, unless the last term's work was dropped or abandoned | 503 |
    /// | `/leading` | while this process leads | 503 |
    ///
    /// Every other path gets 404. A follower is ready, because it can take over; otherwise a rolling update would wait
    /// forever. Tasks of dropped or abandoned work may still run, so the process is then not ready until it leads again
    /// or is restarted.
    #[must_use]
    pub fn answer(&self, path: &str) -> (u16, String) {
        match path {
            "/healthz" => match self.health.check() {
                Ok(()) => (200, "ok".to_owned()),
                Err(unhealthy) => (500, unhealthy.to_string()),
            },
            "/readyz" if self.handle.status.read().work_was_left => (
                503,
                "the work of the last term did not end in time, and tasks of it may still run; restart this process, and let the \
                 work end when leadership is lost"
                    .to_owned(),
            ),
            "/readyz" if self.handle.observed().is_some() => (200, "ok".to_owned()),
            "/readyz" => (503, format!("{} has not read its lock yet; the log says why", self.health.name())),
            "/leading" if self.handle.is_leader() => (200, "leading".to_owned()),
            "/leading" => (503, "not leading".to_owned()),
            _ => (404, "ask for /healthz, /readyz or /leading".to_owned()),
        }
    }
}
