//! The terms that histories tell of, beside those that the looks have shown.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::history::EndedTerm;

use super::board::{REMEMBERED, Run};
use crate::pages::{Term, before};

/// The time before the first look that the timelines show at most.
const SHOWN: Duration = Duration::from_secs(24 * 60 * 60);

/// The number of runs that are shown.
const MOST_RUNS: usize = 200;

/// Adds the last terms of a history to those that the looks have shown. The history knows better why a term ended, and when.
pub(super) fn join(terms: &mut Vec<Term>, history: &[EndedTerm]) {
    for (at, ended) in history.iter().enumerate().skip(history.len().saturating_sub(REMEMBERED)) {
        let next = history.get(at + 1).and_then(|next| next.from);
        let (Some(from), Some(until)) = (ended.from, ended.to.or(next).or(ended.from)) else { continue };
        let is_it = |term: &&mut Term| term.token == Some(ended.fencing_token) && term.who == ended.holder;
        let seen = terms.iter_mut().find(is_it);
        let known = Term {
            who: ended.holder.clone(),
            token: Some(ended.fencing_token),
            from,
            until: Some(until.max(from)),
            end: Some(ended.why.to_string()),
        };
        match seen {
            Some(seen) => *seen = known,
            None => terms.push(known),
        }
    }
    if !history.is_empty() {
        terms.sort_by_key(|term| term.from);
        terms.drain(..terms.len().saturating_sub(REMEMBERED));
    }
}

/// The time at which the timelines begin.
pub(super) fn beginning(first_look: DateTime<Utc>, earliest: Option<DateTime<Utc>>) -> DateTime<Utc> {
    earliest.map_or(first_look, |earliest| earliest.clamp(before(first_look, SHOWN), first_look))
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

    fn history(json: &str) -> Vec<EndedTerm> {
        leaderelection::history::parse(format!(r#"{{"terms":[{json}]}}"#).as_bytes()).unwrap()
    }

    fn at(seconds: u64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_history_completes_what_the_looks_have_shown() {
        let mut terms = vec![Term::begin("b", Some(2.into()), at(20)), Term::begin("c", Some(3.into()), at(40))];
        terms[0].end(at(40), &"taken over");
        let kept = history(
            r#"{"holder":"a","fencingToken":1,"from":"1970-01-01T00:00:05Z","why":"expired","next":"b"},
            {"holder":"b","fencingToken":2,"from":"1970-01-01T00:00:18Z","to":"1970-01-01T00:00:37Z","why":"cancelled"}"#,
        );
        for _ in 0..2 {
            join(&mut terms, &kept);
            let seen: Vec<_> =
                terms.iter().map(|term| (&*term.who, term.from, term.until, term.end.as_deref())).collect();
            assert_eq!(
                seen,
                [
                    ("a", at(5), Some(at(18)), Some("the lease expired, and was taken over by \"b\"")),
                    ("b", at(18), Some(at(37)), Some("cancelled by the caller")),
                    ("c", at(40), None, None),
                ]
            );
        }
    }

    #[test]
    fn timelines_begin_a_day_before_the_first_look_at_most() {
        let now = at(1_000_000);
        for (earliest, beginning_at) in
            [(None, now), (Some(at(0)), at(1_000_000 - 86_400)), (Some(at(999_000)), at(999_000))]
        {
            assert_eq!(beginning(now, earliest), beginning_at);
        }
    }
}
