//! The verdict on the reports of the contenders and on their log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use leaderelection::clock::LocalInstant;
use leaderelection_arena::fenced_log::Entry;
use leaderelection_arena::report::Report;
use leaderelection_arena::verdict::{Evidence, check_log};

/// A report, and the process that made it: every process has a different number.
#[derive(Clone, Debug)]
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
    for &Said { process, ref report } in said {
        match *report {
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
            _ => {}
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
    for &Said { process, ref report } in said {
        if let Report::Inside { token, at, until } = *report
            && at >= until
        {
            let (at, until) = (at.as_nanos(), until.as_nanos());
            problems
                .push(format!("process {process} leads by token {token} at {at}, past its window's end at {until}"));
        }
    }
    problems.extend(check_log(log, &evidence(said, log)));
    problems
}

/// Returns the facts that the log is checked against. A term may have no report: a kill can come before the first one.
/// The log's writers are therefore claims, too.
fn evidence(said: &[Said], log: &[Entry]) -> Evidence {
    let mut evidence = Evidence::default();
    for Entry { token, writer, .. } in log {
        evidence.claims.entry(*token).or_insert_with(BTreeSet::new).insert(writer.clone());
    }
    let appended = said.iter().filter_map(|said| match said.report {
        Report::Appended { token, number } => Some((token, number)),
        _ => None,
    });
    evidence.appended.extend(appended);
    evidence
}

fn inside(process: usize, token: u64, at: u64, until: u64) -> Said {
    let [at, until] = [at, until].map(LocalInstant::from_nanos);
    Said { process, report: Report::Inside { token, at, until } }
}

fn appended(process: usize, token: u64, number: u64) -> Said {
    Said { process, report: Report::Appended { token, number } }
}

/// A log with one entry, which is no problem.
fn log() -> [Entry; 1] {
    [Entry::numbered(0, "a", 7)]
}

#[test]
fn leaders_one_after_another_pass() {
    let said = [inside(1, 0, 10, 20), appended(1, 0, 7), inside(1, 0, 15, 25), inside(2, 1, 25, 35)];
    assert_eq!(problems(&said, &log()), Vec::<String>::new());
}

#[test]
fn leaders_that_overlap_fail() {
    // The third report prolongs the first window.
    let said = [inside(1, 0, 10, 20), inside(2, 1, 24, 34), inside(1, 0, 15, 25)];
    assert!(problems(&said, &log())[0].starts_with("two leaders at a time"));
}

#[test]
fn a_leader_past_its_window_fails() {
    assert!(problems(&[inside(1, 0, 20, 20)], &log())[0].contains("past its window's end"));
}

#[test]
fn a_successor_may_begin_when_its_predecessor_has_ended() {
    let ended = Said { process: 1, report: Report::Ended { token: 0, at: LocalInstant::from_nanos(12) } };
    assert_eq!(problems(&[inside(1, 0, 10, 20), ended, inside(2, 1, 13, 23)], &log()), Vec::<String>::new());
}

#[test]
fn tokens_that_do_not_grow_fail() {
    let same = [inside(1, 3, 10, 20), inside(2, 3, 30, 40)];
    assert!(problems(&same, &log())[0].starts_with("a token that is not larger"));
}

#[test]
fn a_log_that_goes_back_fails() {
    assert_eq!(problems(&[], &[Entry::new(1, "a", ""), Entry::new(0, "b", "")]).len(), 1);
    assert_eq!(problems(&[], &[Entry::new(1, "a", ""), Entry::new(1, "b", "")]).len(), 1);
}

#[test]
fn a_lost_entry_fails() {
    let lost = problems(&[appended(1, 0, 8)], &log());
    assert_eq!(lost, ["entry 8 with token 0 was accepted and is not in the log"]);
}
