//! The page for people.

use std::fmt::Display;
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::{LastError, Transition};

use super::facts::Facts;
use super::snapshot::Snapshot;
use crate::page::{line, stamp, time};
use crate::view;

/// The values for the template. The template escapes all of them: identities and messages come from other
/// parties.
#[derive(Debug, Template)]
#[template(path = "page.html")]
struct Page<'a> {
    lock: &'a str,
    snapshot: Snapshot,
    verdict: Verdict,
    /// Newest first.
    transitions: Vec<Transition>,
    last_error: Option<LastError>,
    now: DateTime<Utc>,
}

pub(super) fn render(facts: &Facts) -> Response {
    let snapshot = Snapshot::take(&facts.handle);
    let page = Page {
        lock: &facts.lock,
        verdict: Verdict::of(&snapshot, facts.ready_within, facts.draining.is_cancelled()),
        snapshot,
        transitions: facts.handle.transitions().into_iter().rev().collect(),
        last_error: facts.handle.last_error(),
        now: SystemClock.wall_time(),
    };
    match page.render() {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "the status page cannot be made");
            (StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made; /leader tells the same\n").into_response()
        }
    }
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
