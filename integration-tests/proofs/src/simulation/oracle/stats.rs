//! The numbers of a run.

crate::kit::stats! {
    requests: u64 = "requests",
    writes: u64 = "writes that took effect",
    terms: u64 = "terms",
    deadlines: u64 = "terms that ended at the deadline",
    losses: u64 = "terms that ended because the record belonged to another holder",
    releases: u64 = "releases",
    crashes: u64 = "crashes",
    freezes: u64 = "freezes",
    standstills: u64 = "standstills in the midst of a step",
    clashes: u64 = "reported clashes of identities",
    interventions: u64 = "interventions that took effect",
    strangers: u64 = "writes of strangers",
    jobs: u64 = "jobs done",
    repetitions: u64 = "jobs done again, without a mark that was read",
    words: u64 = "words of peers",
    late_creations: u64 = "late creations",
    take_backs: u64 = "requests of better candidates",
    forgiven: u64 = "times that a leader forgot such requests",
}
