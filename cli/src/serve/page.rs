//! The page for people.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::{LastError, Timings, Transition};
use leaderelection_peers::PeerStatus;

use super::facts::Facts;
use super::latency::Chart;
use super::snapshot::Snapshot;
use super::terms;
use crate::page::{Term, Timeline, between, line, stamp, time, words};
use crate::view;

/// The values for the template. The template escapes all of them: identities and messages come from other
/// parties.
#[derive(Debug, Template)]
#[template(path = "page.html")]
struct Page<'a> {
    lock: &'a str,
    snapshot: Snapshot,
    verdict: Verdict,
    /// The share of the time left, of 1000.
    left: Option<u128>,
    timings: Timings,
    /// Newest first.
    terms: Vec<Term>,
    timeline: Timeline,
    /// The other candidates that were seen to lead.
    others: BTreeSet<String>,
    chart: Option<Chart>,
    /// Newest first.
    transitions: Vec<Transition>,
    last_error: Option<LastError>,
    peers: Option<PeerStatus>,
    now: DateTime<Utc>,
}

pub(super) fn render(facts: &Facts) -> Response {
    let snapshot = Snapshot::take(&facts.handle);
    let (now, identity) = (SystemClock.wall_time(), facts.handle.identity());
    let mut transitions = facts.handle.transitions();
    let verdict = Verdict::of(&snapshot, facts.ready_within, facts.draining.is_cancelled());
    let mut terms = terms::of(&transitions, identity);
    if let Some(reason) = verdict.end_of_term() {
        terms::end(&mut terms, now, reason);
    }
    let began = terms.first().map_or(now, |term| term.from);
    transitions.reverse();
    let page = Page {
        lock: &facts.lock,
        verdict,
        left: share_left(&snapshot, &facts.timings),
        timings: facts.timings,
        timeline: Timeline::of(&terms, began, now),
        others: terms.iter().map(|term| term.who.clone()).filter(|who| who != identity).collect(),
        terms: terms.into_iter().rev().collect(),
        chart: Chart::of(&facts.latencies.last(SystemClock.now()), SystemClock.now()),
        snapshot,
        transitions,
        last_error: facts.handle.last_error(),
        peers: facts.peers.as_ref().map(|attached| attached.status()),
        now,
    };
    match page.render() {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "the status page cannot be made");
            (StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made; /leader tells the same\n").into_response()
        }
    }
}

/// The part of the lease, or of the window of this leader, that is left, of 1000; `None` if nobody leads.
fn share_left(snapshot: &Snapshot, timings: &Timings) -> Option<u128> {
    let whole = if snapshot.leading { Some(timings.renew_deadline()) } else { snapshot.lease_duration };
    let (left, whole) = snapshot.left.filter(|_| !snapshot.name.is_empty()).zip(whole)?;
    Some((left.as_millis() * 1000 / whole.as_millis().max(1)).min(1000))
}

/// The state of the election in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Leading,
    /// This process leads, and is about to stop.
    Draining,
    /// This process holds the lease, but no longer leads.
    Lapsed,
    Following,
    /// The store has not answered for so long that the holder may have changed.
    Stale,
    /// Another candidate holds the lease, but did not renew it in time.
    RunOut,
    Nobody,
    Unknown,
}

impl Verdict {
    fn of(snapshot: &Snapshot, patience: Duration, draining: bool) -> Self {
        match snapshot {
            Snapshot { leading: true, .. } if draining => Self::Draining,
            Snapshot { leading: true, .. } => Self::Leading,
            Snapshot { age: None, .. } => Self::Unknown,
            Snapshot { name, .. } if !name.is_empty() => Self::Following,
            _ if !snapshot.is_fresh(patience) => Self::Stale,
            Snapshot { holder, .. } if holder.is_empty() => Self::Nobody,
            Snapshot { holder, identity, .. } if holder == identity => Self::Lapsed,
            _ => Self::RunOut,
        }
    }

    /// The reason for which the last term is over, although the lock still names its leader.
    fn end_of_term(self) -> Option<&'static str> {
        match self {
            Self::Leading | Self::Draining | Self::Following => None,
            Self::Lapsed | Self::RunOut => Some("not renewed in time"),
            Self::Stale | Self::Unknown => Some("not known: the store does not answer"),
            Self::Nobody => Some("released"),
        }
    }

    /// The name of the style class.
    fn tone(self) -> &'static str {
        match self {
            Self::Leading => "good",
            Self::Following => "calm",
            _ => "bad",
        }
    }
}

fn span(duration: &Duration) -> String {
    view::short(*duration)
}

fn millis(duration: &Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// Formats the time from one moment to another.
fn since(from: &DateTime<Utc>, to: &DateTime<Utc>) -> String {
    words(&between(*from, *to))
}

fn in_words(timings: &Timings) -> String {
    let [lease, renew, retry, request] =
        [timings.lease_duration(), timings.renew_deadline(), timings.retry_period(), timings.request_timeout()]
            .map(humantime::format_duration);
    format!("lease {lease}, renew deadline {renew}, retry period {retry}, request timeout {request}")
}

/// Formats a configured duration.
fn whole(duration: &Duration) -> impl Display {
    humantime::format_duration(*duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_doubts_what_is_old() {
        let fresh = Snapshot {
            name: "a".to_owned(),
            holder: "a".to_owned(),
            fencing_token: Some(1),
            leading: false,
            identity: "b".to_owned(),
            acquire_time: None,
            renew_time: None,
            lease_duration: None,
            age: Some(Duration::from_secs(14)),
            unchanged_for: None,
            left: None,
        };
        let verdict = |snapshot: Snapshot, draining| Verdict::of(&snapshot, Duration::from_secs(15), draining);
        assert_eq!(verdict(fresh.clone(), false), Verdict::Following);
        assert_eq!(verdict(fresh.clone(), true), Verdict::Following);
        let leaderless = Snapshot { name: String::new(), ..fresh };
        assert_eq!(verdict(leaderless.clone(), false), Verdict::RunOut);
        let old = Snapshot { age: Some(Duration::from_secs(16)), ..leaderless.clone() };
        assert_eq!(verdict(old, false), Verdict::Stale);
        assert_eq!(verdict(Snapshot { age: None, ..leaderless.clone() }, false), Verdict::Unknown);
        assert_eq!(verdict(Snapshot { holder: String::new(), ..leaderless.clone() }, false), Verdict::Nobody);
        let ours = Snapshot { holder: "b".to_owned(), ..leaderless };
        assert_eq!(verdict(ours.clone(), false), Verdict::Lapsed);
        let leading = Snapshot { name: "b".to_owned(), leading: true, ..ours };
        assert_eq!(verdict(leading.clone(), false), Verdict::Leading);
        assert_eq!(verdict(leading, true), Verdict::Draining);
    }
}
