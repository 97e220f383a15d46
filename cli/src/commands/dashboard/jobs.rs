//! The page of jobs: what ran, where, when, and with which result. Of limited size, as the page of locks is.

use std::time::Duration;

use askama::Template;
use chrono::{DateTime, Utc};
use leaderelection::FencingToken;
use leaderelection::clock::{Clock as _, SystemClock};

use super::board::{Board, Run};
use super::line::{KEY, PROBLEM};
use super::page::{is_old, that_fit};
use crate::lock::view::failure;
use crate::output::escape::cut;
use crate::pages::{NAME, between, line, stamp, time, words};

/// The values for the template. The template escapes all of them but the lines, which have escaped their own.
#[derive(Debug, Template)]
#[template(path = "jobs.html")]
struct JobsPage<'a> {
    prefix: &'a str,
    runs: &'a [Run],
    failed: usize,
    lines: String,
    age: Option<Duration>,
    is_old: bool,
    now: DateTime<Utc>,
}

/// The values for the template of one run.
#[derive(Debug, Template)]
#[template(path = "run.html")]
struct RunLine {
    lock: String,
    job: Option<String>,
    host: String,
    token: FencingToken,
    from: Option<DateTime<Utc>>,
    took: Option<Duration>,
    result: String,
    failed: bool,
}

impl RunLine {
    fn of(Run { lock, term }: &Run) -> Self {
        let failure = failure(term);
        let result = failure.clone().or_else(|| term.result.clone()).unwrap_or_else(|| term.why.to_string());
        Self {
            lock: cut(lock, KEY),
            job: term.job.as_ref().map(|job| cut(job, NAME)),
            host: cut(&term.holder, NAME),
            token: term.fencing_token,
            from: term.from,
            took: term.from.zip(term.to).map(|(from, to)| between(from, to)),
            result: cut(&result, PROBLEM),
            failed: failure.is_some(),
        }
    }
}

/// All runs in one line.
fn verdict(runs: &[Run], failed: &usize) -> String {
    match (runs.len(), failed) {
        (0, _) => "No runs".to_owned(),
        (all, 0) => format!("{all} runs, none failed"),
        (all, failed) => format!("{failed} of {all} runs failed"),
    }
}

pub(super) fn html(prefix: &str, board: &Board, refresh: Duration) -> Result<String, askama::Error> {
    let (now, age, runs) = (SystemClock.wall_time(), board.age(), &board.runs);
    let (lines, _) = that_fit(runs.iter().map(RunLine::of))?;
    let failed = runs.iter().filter(|run| failure(&run.term).is_some()).count();
    JobsPage { prefix, runs, failed, lines, age, is_old: is_old(age, refresh), now }.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::dashboard::past;

    #[test]
    fn a_failed_run_is_told_from_a_running_one() {
        let terms = leaderelection::history::parse(
            br#"{"terms":[
            {"holder":"a","fencingToken":1,"from":"2026-02-01T03:00:00Z","to":"2026-02-01T03:00:09Z","why":"work_finished","job":"<i>monday","result":"exit code 0"},
            {"holder":"a","fencingToken":2,"from":"2026-02-02T03:00:00Z","why":"expired","next":"b"},
            {"holder":"b","fencingToken":3,"from":"2026-02-02T03:01:00Z","to":"2026-02-02T03:02:00Z","why":"work_failed","job":"tuesday","result":"exit code 3"}]}"#,
        );
        let runs = past::runs([("nightly".to_owned(), terms.unwrap())].into());
        let board = Board { runs, ..Board::default() };
        let html = html("s3://bucket/locks/", &board, Duration::from_secs(5)).unwrap();
        assert!(html.contains("<title>2 of 3 runs failed · "), "{html}");
        let rows: Vec<&str> = html.split("<tr").skip(2).collect();
        assert!(
            rows[0].contains("tuesday") && rows[0].contains("<strong><bdi>exit code 3; the leader&#39;s work failed"),
            "{rows:?}"
        );
        assert!(rows[1].contains("the lease expired, and was taken over by &#34;b&#34;"), "{rows:?}");
        assert!(rows[2].contains("<td>9 s</td><td><bdi>exit code 0</bdi>"), "{rows:?}");
        assert!(html.contains("&#60;i&#62;monday") && !html.contains("<i>"), "{html}");
    }
}
