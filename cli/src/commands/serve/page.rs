//! The page for people.

use std::collections::BTreeSet;
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use leaderelection::Timings;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::handle::{LastError, Operation, Transition};
use leaderelection_peers::PeerStatus;

use super::facts::Facts;
use super::latency::{Chart, Latencies};
use super::snapshot::Snapshot;
use super::terms;
use crate::cause::{self, Cause};
use crate::lock::view;
use crate::pages::{Bar, Term, Timeline, before, between, line, stamp, time, whole, words};

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
    /// Newest first, each with its place on the line of time.
    terms: Vec<(Term, Bar)>,
    timeline: Timeline,
    /// The other candidates that were seen to lead.
    others: BTreeSet<String>,
    /// The requests to each part of the lock.
    charts: Vec<(&'a str, Option<Chart>)>,
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
    let verdict = Verdict::of(&snapshot, facts.timings.lease_duration(), facts.draining.is_cancelled(), now);
    let mut terms = terms::of(&transitions, identity);
    if let Some(reason) = verdict.end_of_term() {
        let is_own = terms.last().is_some_and(|term| term.who == identity);
        terms::end(&mut terms, before(now, overdue(&snapshot, is_own, &facts.timings, now)), &reason);
    }
    let began = terms.first().map_or(now, |term| term.from);
    transitions.reverse();
    let timeline = Timeline::of(&terms, began, now);
    let page = Page {
        lock: &facts.lock,
        verdict,
        left: share_left(&snapshot, &facts.timings),
        timings: facts.timings,
        others: terms.iter().map(|term| term.who.clone()).filter(|who| who != identity).collect(),
        terms: terms.into_iter().zip(timeline.bars.clone()).rev().collect(),
        timeline,
        charts: facts.latencies.iter().map(|(url, latencies)| (url.as_str(), chart(latencies))).collect(),
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

fn chart(latencies: &Latencies) -> Option<Chart> {
    let now = SystemClock.now();
    Chart::of(&latencies.last(now), now)
}

/// The time since a term has ended that was not renewed: since the renew deadline of an own term, and since the end of the
/// lease of another leader.
fn overdue(snapshot: &Snapshot, is_own: bool, timings: &Timings, now: DateTime<Utc>) -> Duration {
    let (renewed_for, allowed) = match snapshot.renew_time.filter(|_| is_own) {
        Some(renewed) => (Some(between(renewed, now)), Some(timings.renew_deadline())),
        None => (snapshot.unchanged_for, snapshot.lease_duration),
    };
    let (renewed_for, allowed) = renewed_for.zip(allowed).unwrap_or_default();
    renewed_for.saturating_sub(allowed)
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
    /// Another candidate holds the lease. No renewal was seen, and the last one is long ago by the holder's clock.
    Doubtful,
    /// Another process leads under the identity of this one.
    Namesake,
    /// The holder may have changed since the store was last of use.
    NotKnown(Option<Cause>),
    /// The object is not a record.
    NotARecord,
    /// Another candidate holds the lease, but did not renew it in time.
    RunOut,
    Nobody,
}

impl Verdict {
    fn of(snapshot: &Snapshot, patience: Duration, draining: bool, now: DateTime<Utc>) -> Self {
        let trouble = snapshot.trouble.as_ref();
        let cause = trouble.map(|error| Cause::of(error.kind));
        let is_blind = trouble.is_some_and(|error| error.operation == Operation::Get);
        match snapshot {
            Snapshot { leading: true, .. } if draining => Self::Draining,
            Snapshot { leading: true, .. } => Self::Leading,
            Snapshot { name, .. } if !name.is_empty() && is_doubtful(snapshot, now) => Self::Doubtful,
            Snapshot { name, .. } if !name.is_empty() => Self::Following,
            Snapshot { of_namesake: true, .. } => Self::Namesake,
            _ if cause == Some(Cause::NotARecord) => Self::NotARecord,
            _ if !snapshot.is_fresh(patience) => Self::NotKnown(cause),
            Snapshot { holder, identity, .. } if holder == identity => Self::Lapsed,
            _ if is_blind => Self::NotKnown(cause),
            Snapshot { holder, .. } if holder.is_empty() => Self::Nobody,
            _ => Self::RunOut,
        }
    }

    /// The reason for which the last term is over, although the lock still names its leader.
    fn end_of_term(self) -> Option<String> {
        match self {
            Self::Leading | Self::Draining | Self::Following | Self::Doubtful | Self::Namesake => None,
            Self::Lapsed | Self::RunOut => Some("not renewed in time".to_owned()),
            Self::NotKnown(cause) => Some(format!("not known: {}", cause.unwrap_or(Cause::Silent))),
            Self::NotARecord => Some("the object was replaced".to_owned()),
            Self::Nobody => Some("released".to_owned()),
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

/// Returns `true` if nothing but the holder's clock tells whether the holder is alive, and that clock says that it is not.
fn is_doubtful(snapshot: &Snapshot, now: DateTime<Utc>) -> bool {
    let renewed = snapshot.renew_time.map(|renewed| between(renewed, now)).zip(snapshot.lease_duration);
    !snapshot.seen_to_change && renewed.is_some_and(|(age, lease)| age > lease)
}

/// The text of an error, which begins with its cause, as a sentence begins.
fn trouble(error: &LastError) -> String {
    let text = cause::of_error(error);
    let mut rest = text.chars();
    line(rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect()))
}

fn change(transition: &Transition) -> String {
    line(cause::of_change(transition))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_doubts_what_is_old() {
        let now = DateTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let fresh = Snapshot {
            name: "a".to_owned(),
            holder: "a".to_owned(),
            client_address: None,
            fencing_token: Some(1),
            leading: false,
            identity: "b".to_owned(),
            acquire_time: None,
            renew_time: Some(DateTime::UNIX_EPOCH),
            lease_duration: Some(Duration::from_secs(15)),
            age: Some(Duration::from_secs(14)),
            unchanged_for: None,
            left: None,
            seen_to_change: true,
            of_namesake: false,
            trouble: None,
        };
        let verdict = |snapshot: Snapshot, draining| Verdict::of(&snapshot, Duration::from_secs(15), draining, now);
        assert_eq!(verdict(fresh.clone(), false), Verdict::Following);
        assert_eq!(verdict(fresh.clone(), true), Verdict::Following);
        assert_eq!(verdict(Snapshot { seen_to_change: false, ..fresh.clone() }, false), Verdict::Doubtful);
        let leaderless = Snapshot { name: String::new(), ..fresh };
        assert_eq!(verdict(leaderless.clone(), false), Verdict::RunOut);
        let old = Snapshot { age: Some(Duration::from_secs(16)), ..leaderless.clone() };
        assert_eq!(verdict(old, false), Verdict::NotKnown(None));
        assert_eq!(verdict(Snapshot { age: None, ..leaderless.clone() }, false), Verdict::NotKnown(None));
        assert_eq!(verdict(Snapshot { holder: String::new(), ..leaderless.clone() }, false), Verdict::Nobody);
        let ours = Snapshot { holder: "b".to_owned(), ..leaderless };
        assert_eq!(verdict(ours.clone(), false), Verdict::Lapsed);
        assert_eq!(verdict(Snapshot { of_namesake: true, ..ours.clone() }, false), Verdict::Namesake);
        let leading = Snapshot { name: "b".to_owned(), leading: true, ..ours };
        assert_eq!(verdict(leading.clone(), false), Verdict::Leading);
        assert_eq!(verdict(leading, true), Verdict::Draining);
    }
}
