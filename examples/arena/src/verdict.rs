//! The comparison of the log with the reports of its writers.

use std::collections::{BTreeMap, BTreeSet};

use crate::fenced_log::Entry;

/// The facts that the log is checked against.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The candidates that claimed each token, according to the lock or to their own reports.
    pub claims: BTreeMap<u64, BTreeSet<String>>,
    /// Every append that was reported as done: token and number.
    pub appended: Vec<(u64, u64)>,
}

/// Returns the problems of the log, if there are any.
#[must_use]
pub fn check_log(log: &[Entry], evidence: &Evidence) -> Vec<String> {
    let mut problems = Vec::new();
    if log.is_empty() {
        problems.push("the log is empty: nobody has worked".to_owned());
    }
    for (number, pair) in log.windows(2).enumerate() {
        if let [before, after] = pair
            && after.token < before.token
        {
            let number = number + 2;
            problems.push(format!("entry {number} of the log: token {} comes after {}", after.token, before.token));
        }
    }
    let mut holders = evidence.claims.clone();
    for Entry { token, writer, .. } in log {
        if !evidence.claims.contains_key(token) {
            problems.push(format!("{writer} wrote with token {token}, of a term that nobody has seen"));
        }
        holders.entry(*token).or_default().insert(writer.clone());
    }
    for (token, holders) in holders.iter().filter(|(_, holders)| holders.len() > 1) {
        let holders = Vec::from_iter(holders.iter().map(String::as_str)).join(" and ");
        problems.push(format!("token {token} was used by {holders}"));
    }
    for &(token, number) in &evidence.appended {
        let expected = Entry::numbered(token, "", number).text;
        if !log.iter().any(|entry| entry.token == token && entry.text == expected) {
            problems.push(format!("{expected} with token {token} was accepted and is not in the log"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(entries: &[(u64, &str)]) -> Vec<Entry> {
        let mut numbers = BTreeMap::<u64, u64>::new();
        let numbered = |&(token, writer): &(u64, &str)| {
            let number = numbers.entry(token).or_default();
            *number += 1;
            Entry::numbered(token, writer, *number)
        };
        entries.iter().map(numbered).collect()
    }

    fn evidence() -> Evidence {
        let claims = [(0, "a"), (1, "b"), (2, "a")].map(|(token, who)| (token, BTreeSet::from([who.to_owned()])));
        Evidence { claims: claims.into(), appended: vec![(0, 1), (1, 1)] }
    }

    fn problems(entries: &[(u64, &str)]) -> Vec<String> {
        check_log(&log(entries), &evidence())
    }

    #[test]
    fn a_good_log_passes() {
        assert_eq!(problems(&[(0, "a"), (0, "a"), (1, "b"), (2, "a")]), Vec::<String>::new());
    }

    #[test]
    fn an_empty_log_fails() {
        assert_eq!(check_log(&[], &Evidence::default()), ["the log is empty: nobody has worked"]);
    }

    #[test]
    fn a_token_that_goes_back_fails() {
        assert_eq!(problems(&[(0, "a"), (1, "b"), (0, "a")]), ["entry 3 of the log: token 0 comes after 1"]);
    }

    #[test]
    fn two_writers_with_one_token_fail() {
        assert_eq!(problems(&[(0, "a"), (1, "b"), (1, "c")]), ["token 1 was used by b and c"]);
    }

    #[test]
    fn two_holders_of_one_token_fail() {
        let mut evidence = evidence();
        evidence.claims.entry(2).or_default().insert("c".to_owned());
        assert_eq!(check_log(&log(&[(0, "a"), (1, "b")]), &evidence), ["token 2 was used by a and c"]);
    }

    #[test]
    fn a_token_of_no_term_fails() {
        let expected = ["b wrote with token 7, of a term that nobody has seen"];
        assert_eq!(problems(&[(0, "a"), (1, "b"), (7, "b")]), expected);
    }

    #[test]
    fn an_accepted_entry_that_is_missing_fails() {
        assert_eq!(problems(&[(0, "a")]), ["entry 1 with token 1 was accepted and is not in the log"]);
    }
}
