//! The recorder behind /metrics, in the form that the dashboard and the alert rules of docs/ need.

use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// The buckets of the renewal histogram. Without buckets, the metric would be a summary.
const RENEWAL_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The interval at which samples are merged if nobody requests /metrics.
const UPKEEP: Duration = Duration::from_secs(5);

/// Installs the recorder for all metrics of this process.
pub(super) fn install() -> Result<PrometheusHandle, BuildError> {
    let handle = builder()?.install_recorder()?;
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    let renewals = Matcher::Full("leader_election_renewal_duration_seconds".to_owned());
    PrometheusBuilder::new().set_buckets_for_metric(renewals, &RENEWAL_BUCKETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboard_finds_its_buckets() {
        let recorder = builder().unwrap().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            metrics::histogram!("leader_election_renewal_duration_seconds", "name" => "operator").record(0.02);
        });
        let shown = recorder.handle().render();
        assert!(
            shown.contains(r#"leader_election_renewal_duration_seconds_bucket{name="operator",le="0.025"} 1"#),
            "{shown}"
        );
    }
}
