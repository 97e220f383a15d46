//! The texts and the units of the metrics, for exporters that show them.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Gives each metric of electors and sessions its text and its unit, such as the `# HELP` of Prometheus. Call it once, after you
/// have installed the recorder. Behind the feature `metrics`.
///
/// ```
/// // Install the recorder of your exporter here.
/// leaderelection::describe_metrics();
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
