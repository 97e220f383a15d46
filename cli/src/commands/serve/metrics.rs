//! The recorder behind /metrics.

use std::time::Duration;

use metrics::{describe_counter, describe_gauge, describe_histogram};
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
    describe();
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

/// The texts of `# HELP`. docs/metrics.md has more to say.
fn describe() {
    describe_gauge!("leader_election_master_status", "1 while this process leads, 0 otherwise.");
    describe_gauge!(
        "leader_election_last_renewal_timestamp_seconds",
        "Time at which the last write that won or renewed the lease was sent, by this machine's clock."
    );
    describe_gauge!(
        "leader_election_certificate_expiry_timestamp_seconds",
        "Time at which a certificate of this process expires, the first of its chain."
    );
    describe_gauge!(
        "leader_election_parts_left_out",
        "Parts of the lock that this leader does without, because their tokens are above its own."
    );
    describe_histogram!(
        "leader_election_renewal_duration_seconds",
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
        ("leader_election_peer_heard_total", "Messages of the leader."),
        ("leader_election_peer_refused_total", "Failed attempts to get messages from the leader, by reason."),
        (
            "leader_election_peer_fallbacks_total",
            "Times that the leader's messages stopped and the store was read again.",
        ),
        ("leader_election_peer_reads_saved_total", "Reads of the store that the leader's messages have saved."),
    ] {
        describe_counter!(name, text);
    }
}

fn recorder() -> Result<PrometheusHandle, BuildError> {
    let renewals = Matcher::Full("leader_election_renewal_duration_seconds".to_owned());
    PrometheusBuilder::new().set_buckets_for_metric(renewals, &RENEWAL_BUCKETS)?.install_recorder()
}
