//! The descriptions and units of the metrics, for exporters that show them.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Describes each metric of electors and sessions to the recorder, with its unit. Prometheus, for example, shows a description as
/// `# HELP`. Call this function once, after you have installed the recorder. Requires the feature `metrics`.
///
/// The example is for OpenTelemetry. It uses `metrics-exporter-otel` 0.3, with `opentelemetry` and `opentelemetry_sdk` 0.31. Use any
/// exporter for these versions, such as that of `opentelemetry-otlp`.
///
/// ```
/// use metrics_exporter_otel::OpenTelemetryRecorder;
/// use opentelemetry::metrics::MeterProvider;
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// # use leaderelection::{DefaultLeaderElector, Elector, LeaderElectionConfig, MemoryLock, MemoryStore};
/// # use opentelemetry_sdk::metrics::{InMemoryMetricExporter, data::ResourceMetrics};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let exporter = InMemoryMetricExporter::default();
/// # let exported = exporter.clone();
/// # let config = LeaderElectionConfig::builder(MemoryLock::new(MemoryStore::new(), "lock", "a"), ()).build()?;
///
/// let meters = SdkMeterProvider::builder().with_periodic_exporter(exporter).build();
/// let recorder = OpenTelemetryRecorder::new(meters.meter("my-service"));
/// // OpenTelemetry's own buckets are for milliseconds.
/// let seconds = vec![0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// recorder.set_histogram_bounds(&"leader_election_renewal_duration_seconds".into(), seconds);
/// metrics::set_global_recorder(recorder)?;
/// leaderelection::describe_metrics();
/// # DefaultLeaderElector::new(config).run_while_leading(std::future::pending(), async |_| ()).await?;
/// // Call this after the campaign, to export the last values.
/// meters.shutdown()?;
/// # let exported = exported.get_finished_metrics()?;
/// # let metrics: Vec<_> = exported.iter().flat_map(ResourceMetrics::scope_metrics).flat_map(|one| one.metrics()).collect();
/// # let described = |name: &str| metrics.iter().find(|one| one.name() == name).map(|one| (one.unit(), one.description()));
/// # assert_eq!(described("leader_election_terms_total"), Some(("1", "Terms that this process began.")));
/// # assert!(described("leader_election_last_renewal_timestamp_seconds").is_some_and(|(unit, _)| unit == "s"));
/// # Ok(())
/// # }
/// ```
pub fn describe_metrics() {
    describe_gauge!("leader_election_master_status", "1 while this process leads, 0 otherwise.");
    describe_gauge!(
        "leader_election_last_renewal_timestamp_seconds",
        Unit::Seconds,
        "Time at which the last write that won or renewed the lease was sent, by this machine's clock."
    );
    describe_gauge!(
        "leader_election_parts_left_out",
        "Parts of the lock that this leader does without, because their tokens are above its own."
    );
    describe_histogram!(
        "leader_election_renewal_duration_seconds",
        Unit::Seconds,
        "Time from the send of a successful renewal to its answer."
    );
    for (name, text) in [
        ("leader_election_slowpath_total", "Reads by a leader, after a write without an answer or with a conflict."),
        ("leader_election_transitions_total", "New leaders that this candidate saw, itself included."),
        ("leader_election_terms_total", "Terms that this process began."),
        ("leader_election_terms_ended_total", "Terms of this process that ended, by reason."),
        ("leader_election_store_requests_total", "Requests to the store, by operation and outcome."),
        ("leader_election_ambiguous_writes_total", "Writes without an answer, by what was found out about them."),
        ("leader_election_overruns_total", "Terms whose work did not stop in time."),
        ("leader_election_identity_clashes_total", "Sightings of another process with the same identity."),
    ] {
        describe_counter!(name, Unit::Count, text);
    }
}
