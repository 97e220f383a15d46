//! The runs that histories report, and the time at which the timelines begin.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::history::EndedTerm;

use super::board::Run;
use crate::pages::before;

/// The time before the first poll that the timelines show at most.
const SHOWN: Duration = Duration::from_secs(24 * 60 * 60);

/// The number of runs that are shown.
const MOST_RUNS: usize = 200;

/// The time at which the timelines begin.
pub(super) fn beginning(first_scan: DateTime<Utc>, earliest: Option<DateTime<Utc>>) -> DateTime<Utc> {
    earliest.map_or(first_scan, |earliest| earliest.clamp(before(first_scan, SHOWN), first_scan))
}

/// The runs of all locks under which commands or jobs ran, the newest first.
pub(super) fn runs(histories: BTreeMap<String, Vec<EndedTerm>>) -> Vec<Run> {
    let runs_something = |terms: &Vec<EndedTerm>| terms.iter().any(|term| term.job.is_some() || term.result.is_some());
    let of_lock =
        |(lock, terms): (String, Vec<EndedTerm>)| terms.into_iter().map(move |term| Run { lock: lock.clone(), term });
    let mut runs: Vec<Run> =
        histories.into_iter().filter(|(_, terms)| runs_something(terms)).flat_map(of_lock).collect();
    runs.sort_by_key(|run| Reverse(run.term.from));
    runs.truncate(MOST_RUNS);
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn timelines_begin_a_day_before_the_first_poll_at_most() {
        let now = at(1_000_000);
        for (earliest, beginning_at) in
            [(None, now), (Some(at(0)), at(1_000_000 - 86_400)), (Some(at(999_000)), at(999_000))]
        {
            assert_eq!(beginning(now, earliest), beginning_at);
        }
    }
}
