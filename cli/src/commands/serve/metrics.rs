//! The recorder behind /metrics.

use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::exit::Failure;

/// The buckets of the renewal histogram. The dashboard and the alert rules of docs/ need buckets; without them,
/// the metric would be a summary.
const RENEWAL_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The interval at which samples are merged if nobody requests /metrics.
const UPKEEP: Duration = Duration::from_secs(5);

/// The type of the content of /metrics.
pub(crate) const CONTENT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Installs the recorder for all metrics of this process.
pub(crate) fn install() -> Result<PrometheusHandle, Failure> {
    let handle = recorder().map_err(|error| Failure::internal(format!("cannot record metrics: {error}")))?;
    leaderelection::describe_metrics();
    leaderelection_peers::describe_metrics();
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

fn recorder() -> Result<PrometheusHandle, BuildError> {
    let renewals = Matcher::Full("leader_election_renewal_duration_seconds".to_owned());
    PrometheusBuilder::new().set_buckets_for_metric(renewals, &RENEWAL_BUCKETS)?.install_recorder()
}
