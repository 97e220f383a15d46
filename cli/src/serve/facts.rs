//! The data behind all answers.

use std::time::Duration;

use leaderelection::{HealthCheck, LeaderHandle};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct Facts {
    /// The URL of the lock, without secrets.
    pub(super) lock: String,
    pub(super) handle: LeaderHandle,
    pub(super) health: HealthCheck,
    /// The greatest age of the store's last answer at which /readyz succeeds.
    pub(super) ready_within: Duration,
    /// Cancelled when the process is about to end.
    pub(super) draining: CancellationToken,
    pub(super) metrics: PrometheusHandle,
}
