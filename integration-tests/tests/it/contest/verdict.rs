//! The verdict on the reports of the contenders and on their log.

use std::collections::BTreeMap;
use std::fmt;

use leaderelection::clock::LocalInstant;
use leaderelection_arena::fenced_log::Entry;
use leaderelection_integration_tests::contender::Report;

/// A report, and the process that made it: every process has a different number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) process: usize,
    pub(super) report: Report,
}

/// The time in which a process led by one term, as far as its reports show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) token: u64,
    pub(super) process: usize,
    pub(super) from: LocalInstant,
    pub(super) until: LocalInstant,
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, process, from, until } = self;
        write!(f, "process {process} by token {token} from {} to {}", from.as_nanos(), until.as_nanos())
    }
}

/// Returns all windows, in the order of their beginnings.
pub(super) fn windows(said: &[Said]) -> Vec<Window> {
    let mut windows = BTreeMap::<(usize, u64), Window>::new();
    for &Said { process, report } in said {
        match report {
            Report::Inside { token, at, until } => {
                let fresh = Window { token, process, from: at, until };
                let window = windows.entry((process, token)).or_insert(fresh);
                window.until = window.until.max(until);
            }
            // The window ends early if the lease is released.
            Report::Ended { token, at } => {
                if let Some(window) = windows.get_mut(&(process, token)) {
                    window.until = window.until.min(at);
                }
            }
            Report::Appended { .. } | Report::Fenced { .. } => {}
        }
    }
    let mut windows: Vec<_> = windows.into_values().collect();
    windows.sort_by_key(|window| window.from);
    windows
}

/// Returns the contradictions in the reports of the contenders and in the log.
pub(super) fn problems(said: &[Said], log: &[Entry]) -> Vec<String> {
    let mut problems = Vec::new();
    for pair in windows(said).windows(2) {
        let [before, after] = pair else { continue };
        if after.from < before.until {
            problems.push(format!("two leaders at a time: {before}; {after}"));
        }
        if after.token <= before.token {
            problems.push(format!("a token that is not larger: {before}; {after}"));
        }
    }
    for &Said { process, report } in said {
        if let Report::Inside { token, at, until } = report
            && at >= until
        {
            let (at, until) = (at.as_nanos(), until.as_nanos());
            problems
                .push(format!("process {process} leads by token {token} at {at}, past its window's end at {until}"));
        }
    }
    for pair in log.windows(2) {
        if let [before, after] = pair
            && (after.token < before.token || (after.token == before.token && after.writer != before.writer))
        {
            problems.push(format!("in the log: {after:?} after {before:?}"));
        }
    }
    for Said { report, .. } in said {
        if let Report::Appended { token, number } = report
            && !log.iter().any(|entry| entry.token == *token && entry.text == number.to_string())
        {
            problems.push(format!("entry {number} with token {token} was taken and is not in the log"));
        }
    }
    problems
}

fn said(process: usize, line: &str) -> Said {
    Said { process, report: line.parse().expect("a report") }
}

#[test]
fn leaders_one_after_another_pass() {
    let said =
        [said(1, "inside 0 10 20"), said(1, "appended 0 7"), said(1, "inside 0 15 25"), said(2, "inside 1 25 35")];
    assert_eq!(problems(&said, &[Entry::new(0, "a", "7")]), Vec::<String>::new());
}

#[test]
fn leaders_that_overlap_fail() {
    // The second report prolongs the first window.
    let said = [said(1, "inside 0 10 20"), said(2, "inside 1 24 34"), said(1, "inside 0 15 25")];
    assert!(problems(&said, &[])[0].starts_with("two leaders at a time"));
}

#[test]
fn a_leader_past_its_window_fails() {
    assert!(problems(&[said(1, "inside 0 20 20")], &[])[0].contains("past its window's end"));
}

#[test]
fn a_successor_may_begin_when_its_predecessor_has_ended() {
    let said = [said(1, "inside 0 10 20"), said(1, "ended 0 12"), said(2, "inside 1 13 23")];
    assert_eq!(problems(&said, &[]), Vec::<String>::new());
}

#[test]
fn tokens_that_do_not_grow_fail() {
    let same = [said(1, "inside 3 10 20"), said(2, "inside 3 30 40")];
    assert!(problems(&same, &[])[0].starts_with("a token that is not larger"));
}

#[test]
fn a_log_that_goes_back_fails() {
    assert_eq!(problems(&[], &[Entry::new(1, "a", ""), Entry::new(0, "b", "")]).len(), 1);
    assert_eq!(problems(&[], &[Entry::new(1, "a", ""), Entry::new(1, "b", "")]).len(), 1);
}

#[test]
fn a_lost_entry_fails() {
    assert_eq!(problems(&[said(1, "appended 0 7")], &[]), ["entry 7 with token 0 was taken and is not in the log"]);
}
