//! The numbers of a run.

use crate::kit::Longest;

crate::kit::stats! {
    requests: u64 = "requests",
    writes: u64 = "writes",
    sessions: u64 = "sessions",
    ended_by_others: u64 = "sessions ended by others",
    deletions: u64 = "sessions deleted",
    terms: u64 = "terms",
    releases: u64 = "releases of single locks",
    hand_overs: u64 = "hand-overs",
    crashes: u64 = "crashes",
    freezes: u64 = "freezes",
    stops: u64 = "stops",
    interventions: u64 = "interventions",
    longest_gap: Longest = "seconds without a leader at most",
}
