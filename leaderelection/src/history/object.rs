//! The object of a history: a list of terms, the oldest first.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{EndedTerm, Retention};
use crate::store::MAX_BODY_BYTES;
use crate::term::TermEndReason;

#[derive(Debug, Serialize, Deserialize)]
struct Body<T> {
    terms: T,
}

/// Reads a history from an object's body. Returns `None` if the body is not a history.
#[must_use]
pub fn parse(body: &[u8]) -> Option<Vec<EndedTerm>> {
    serde_json::from_slice(body).ok().map(|Body { terms }| terms)
}

/// Adds `new`, and returns the new body of the history. Removes terms that are too old, and the oldest ones if there
/// are too many or the body is too large. Returns `None` if no write is needed: the history has `new` already, or `new`
/// is the next leader's entry for a term that has an entry.
pub(super) fn add(mut terms: Vec<EndedTerm>, new: &EndedTerm, keep: &Retention, now: DateTime<Utc>) -> Option<Vec<u8>> {
    let is_same = |term: &EndedTerm| (&term.holder, term.fencing_token) == (&new.holder, new.fencing_token);
    match terms.iter_mut().rev().find(|term| is_same(term)) {
        Some(term) if term == new || matches!(new.why, TermEndReason::Expired { .. }) => return None,
        // The holder knows why its term ended, so its entry replaces that of the next leader.
        Some(term) => *term = new.clone(),
        None => terms.push(new.clone()),
    }
    let oldest = TimeDelta::from_std(keep.age).ok().and_then(|age| now.checked_sub_signed(age));
    terms.retain(|term| {
        term == new || term.to.or(term.from).is_none_or(|ended| oldest.is_none_or(|oldest| ended >= oldest))
    });
    let too_many = terms.len().saturating_sub(keep.terms.into());
    terms.drain(..too_many);
    while let Ok(body) = serde_json::to_vec(&Body { terms: &terms }) {
        if body.len() <= MAX_BODY_BYTES {
            return Some(body);
        }
        terms.remove(0);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn at(hours: u32) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + HOUR * hours
    }

    fn term(holder: &str, fencing_token: u64, hour: u32, why: TermEndReason) -> EndedTerm {
        let (from, to) = (Some(at(hour)), Some(at(hour + 1)));
        EndedTerm {
            holder: holder.to_owned(),
            fencing_token: fencing_token.into(),
            from,
            to,
            why,
            job: None,
            result: None,
        }
    }

    fn after(terms: Vec<EndedTerm>, new: &EndedTerm, keep: &Retention, hour: u32) -> Vec<EndedTerm> {
        parse(&add(terms, new, keep, at(hour)).unwrap()).unwrap()
    }

    #[test]
    fn a_history_is_bounded_by_number_by_age_and_by_size() {
        let keep = Retention::terms(3).for_at_most(HOUR * 10);
        let mut terms = Vec::new();
        for token in 0..5 {
            terms = after(
                terms,
                &term("a", token, 2 * token as u32, TermEndReason::Cancelled),
                &keep,
                2 * token as u32 + 1,
            );
        }
        let tokens = |terms: &[EndedTerm]| terms.iter().map(|term| term.fencing_token).collect::<Vec<_>>();
        assert_eq!(tokens(&terms), [2, 3, 4]);
        assert_eq!(tokens(&after(terms, &term("a", 5, 17, TermEndReason::Cancelled), &keep, 18)), [4, 5]);
        let long =
            |token| EndedTerm { result: Some("x".repeat(20_000)), ..term("a", token, 0, TermEndReason::Cancelled) };
        let body = add((0..3).map(long).collect(), &long(3), &Retention::terms(200), at(1)).unwrap();
        assert!(body.len() <= MAX_BODY_BYTES);
        assert_eq!(tokens(&parse(&body).unwrap()), [1, 2, 3]);
    }

    #[test]
    fn the_holders_entry_replaces_that_of_the_next_leader() {
        let keep = Retention::terms(10);
        let seen = term("a", 7, 0, TermEndReason::Expired { by: Some("b".to_owned()) });
        let terms = after(Vec::new(), &seen, &keep, 2);
        assert_eq!(add(terms.clone(), &seen, &keep, at(2)), None);
        let late = term("a", 7, 0, TermEndReason::RenewDeadline);
        let terms = after(terms, &late, &keep, 2);
        assert_eq!(terms, std::slice::from_ref(&late));
        assert_eq!(add(terms, &seen, &keep, at(2)), None);
    }

    #[test]
    fn other_objects_are_not_histories() {
        for body in
            ["", "{}", r#"{"holderIdentity":"a","leaseDuration":"15s","leaderTransitions":0}"#, r#"{"terms":[{}]}"#]
        {
            assert_eq!(parse(body.as_bytes()), None, "{body}");
        }
        assert_eq!(parse(br#"{"terms":[]}"#), Some(Vec::new()));
    }
}
