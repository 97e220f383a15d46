//! What /metrics shows.

use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::exit::{Exit, Failure};

/// The dashboard and the alert rules of docs/ need buckets; without them it would be a summary.
const RENEWAL_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Samples that nobody asks for are merged this often.
const UPKEEP: Duration = Duration::from_secs(5);

/// Records whatever the process counts from now on.
pub(super) fn install() -> Result<PrometheusHandle, Failure> {
    let handle = recorder().map_err(|error| Failure::new(Exit::Internal, format!("cannot record metrics: {error}")))?;
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
