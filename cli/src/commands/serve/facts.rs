//! The data behind all answers.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::{HealthCheck, LeaderHandle, Timings};
use leaderelection_peers::Attached;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;

use super::latency::Latencies;
use super::program::Program;
use super::snapshot::{Published, Snapshot};

#[derive(Debug)]
pub(super) struct Facts {
    /// The URL of the lock, without secrets.
    pub(super) lock: String,
    pub(super) handle: LeaderHandle,
    pub(super) program: Arc<Program>,
    pub(super) timings: Timings,
    /// The latencies of each part of the lock, with its URL.
    pub(super) latencies: Vec<(String, Latencies)>,
    pub(super) health: HealthCheck,
    /// The time for which the lease is kept after a signal.
    pub(super) drain: Duration,
    /// Cancelled when the process is about to end.
    pub(super) draining: CancellationToken,
    /// Cancelled when leadership ends with the process.
    pub(super) shutdown: CancellationToken,
    pub(super) metrics: PrometheusHandle,
    /// The connection with the peers, if there is one.
    pub(super) peers: Option<Arc<Attached>>,
}

impl Facts {
    /// The answer of /leader now.
    pub(super) fn told(&self) -> Published {
        self.told_of(Snapshot::take(&self.handle))
    }

    pub(super) fn told_of(&self, snapshot: Snapshot) -> Published {
        let status = snapshot.status(self.timings.lease_duration(), SystemClock.wall_time());
        Published { snapshot, status, draining: self.draining.is_cancelled(), job_done: self.program.job_done() }
    }
}
