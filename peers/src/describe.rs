//! The texts and the units of the metrics, for exporters that show them.

use metrics::{Unit, describe_counter, describe_gauge};

/// Gives each metric of this crate its text and its unit, as [`leaderelection::describe_metrics`] does for those of electors.
pub fn describe_metrics() {
    describe_gauge!(
        "leader_election_certificate_expiry_timestamp_seconds",
        Unit::Seconds,
        "Time at which a certificate of this process expires, the first of its chain."
    );
    for (name, text) in [
        ("leader_election_peer_heard_total", "Messages of the leader."),
        ("leader_election_peer_refused_total", "Failed attempts to get messages from the leader, by reason."),
        (
            "leader_election_peer_fallbacks_total",
            "Times that the leader's messages stopped and the store was read again.",
        ),
        ("leader_election_peer_reads_saved_total", "Reads of the store that the leader's messages have saved."),
    ] {
        describe_counter!(name, Unit::Count, text);
    }
}
