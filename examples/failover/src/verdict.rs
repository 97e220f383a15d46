//! Checks that all went as it must.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use leaderelection_arena::fenced_log::Entry;

use crate::report::entry_text;
use crate::scenario::{Findings, Takeover, Thaw, ms};
use crate::world::World;

#[derive(Debug)]
pub struct Verdict {
    figures: Vec<(&'static str, String)>,
    problems: Vec<String>,
}

/// The facts that the log is checked against.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The candidates that claimed each token, according to the lock or to their own reports.
    pub claims: BTreeMap<u64, BTreeSet<String>>,
    /// Every append that was reported as done: token and number.
    pub appended: Vec<(u64, u64)>,
}

impl Verdict {
    pub fn new(world: &World, log: &[Entry], findings: &anyhow::Result<Findings>) -> Self {
        let evidence = Evidence { claims: world.claims.clone(), appended: world.appended.clone() };
        let mut problems = check_log(log, &evidence);
        let tokens: Vec<String> = evidence.claims.keys().map(u64::to_string).collect();
        let mut figures = vec![
            ("terms", format!("{}, with the fencing tokens {}", tokens.len(), tokens.join(", "))),
            ("log", format!("{} entries; tokens never go back, one writer per token", log.len())),
        ];
        match findings {
            Ok(findings) => {
                problems.extend(check_findings(findings));
                figures.extend(figures_of(findings));
            }
            Err(error) => problems.push(format!("{error:#}")),
        }
        Self { figures, problems }
    }

    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.passed() {
            writeln!(f, "verdict: passed")?;
            return self.figures.iter().try_for_each(|(name, figure)| writeln!(f, "  {name:<8} {figure}"));
        }
        writeln!(f, "verdict: FAILED")?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "  {problem}"))
    }
}

fn figures_of(Findings { crash, handover, freeze }: &Findings) -> [(&'static str, String); 4] {
    let after = |takeover: &Takeover| format!("taken over {} after the lease had run out", ms(takeover.after_expiry));
    [
        ("kill -9", after(crash)),
        ("SIGTERM", format!("handed over in {}", ms(*handover))),
        ("SIGSTOP", format!("{}; frozen for {:.1}s", after(&freeze.takeover), freeze.lasted.as_secs_f64())),
        (
            "SIGCONT",
            format!("noticed before any work: {} entries written, its stale token refused", freeze.entries_after),
        ),
    ]
}

fn check_findings(Findings { crash, freeze, .. }: &Findings) -> Vec<String> {
    let mut problems = Vec::new();
    if crash.too_early || freeze.takeover.too_early {
        problems.push("a lease was taken before it had run out".to_owned());
    }
    match &freeze.thaw {
        Thaw::Leads => problems.push("the frozen leader still believed to lead when it went on".to_owned()),
        Thaw::Stopped(stale) if !stale.refused => {
            problems.push("the log took an entry with the token of a term that was over".to_owned());
        }
        Thaw::Stopped(_) => {}
    }
    if freeze.entries_after > 0 {
        problems.push(format!("{} entries of the frozen leader are from after it went on", freeze.entries_after));
    }
    problems
}

/// Returns the problems of the log, if there are any.
pub fn check_log(log: &[Entry], evidence: &Evidence) -> Vec<String> {
    let mut problems = Vec::new();
    if log.is_empty() {
        problems.push("the log is empty: nobody has worked".to_owned());
    }
    for (line, pair) in log.windows(2).enumerate() {
        if let [before, after] = pair
            && after.token < before.token
        {
            let line = line + 2;
            problems.push(format!("line {line}: token {} comes after {}", after.token, before.token));
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
        let text = entry_text(number);
        if !log.iter().any(|entry| entry.token == token && entry.text == text) {
            problems.push(format!("{text} with token {token} was accepted and is not in the log"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(entries: &[(u64, &str)]) -> Vec<Entry> {
        let mut numbers = BTreeMap::<u64, u64>::new();
        entries
            .iter()
            .map(|&(token, writer)| {
                let number = numbers.entry(token).or_default();
                *number += 1;
                Entry::new(token, writer, entry_text(*number))
            })
            .collect()
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
        assert_eq!(problems(&[(0, "a"), (1, "b"), (0, "a")]), ["line 3: token 0 comes after 1"]);
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
