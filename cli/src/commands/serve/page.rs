//! The page for people.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::handle::{Change, LastError, Transition};
use leaderelection::{TermEndReason, Timings};
use leaderelection_peers::PeerStatus;

use super::facts::Facts;
use super::latency::{Chart, Latencies};
use super::role::Role;
use super::snapshot::Snapshot;
use super::terms;
use crate::cause::{self, Cause};
use crate::history::Term;
use crate::lock::status::LockStatus;
use crate::lock::view::{self, Times, View};
use crate::pages::{
    Bar, Timeline, advice, before, between, capital, last_leader, lasted, line, sentence, stamp, time, whole, words,
};

/// The values for the template. The template escapes all of them: identities and messages come from other
/// parties.
#[derive(Debug, Template)]
#[template(path = "page.html")]
struct StatusPage<'a> {
    lock: &'a str,
    snapshot: Snapshot,
    view: View,
    /// The time for which the lock has been as it is, where the verdict tells it.
    lasted: Option<Duration>,
    /// What this candidate does.
    role: Cow<'static, str>,
    draining: bool,
    tone: &'static str,
    next_step: Option<String>,
    /// The parts of the lock whose last request failed, if there are several parts, and the errors.
    away: Vec<(&'a str, String, Duration)>,
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
    let status = snapshot.status(facts.timings.lease_duration(), now);
    let mut terms = terms::of(&transitions, identity);
    let own_end = terms.last().filter(|term| term.holder == identity).and_then(|term| term.ended.clone());
    let view = View {
        lock: facts.lock.clone(),
        status,
        lease_duration: snapshot.lease_duration,
        holder: Some(snapshot.holder.clone()).filter(|holder| !holder.is_empty()),
        preferred_holder: snapshot.preferred_holder.clone().filter(|next| next != identity),
        by_holders_clock: Some(Times { acquire_time: snapshot.acquire_time, renew_time: snapshot.renew_time }),
        ..View::default()
    };
    let draining = facts.draining.is_cancelled();
    let lease = facts.timings.lease_duration();
    let role = Role { snapshot: &snapshot, view: &view, lease, draining, own_end: own_end.as_ref() };
    let (is_lapsed, next_step, role) = (role.is_lapsed(), role.next_step(), role.sentence());
    if let Some(reason) = end_of_term(status, is_lapsed) {
        let is_own = terms.last().is_some_and(|term| term.holder == identity);
        terms::end(&mut terms, before(now, overdue(&snapshot, is_own, &facts.timings, now)), reason);
    }
    let others = terms.iter().map(|term| term.holder.clone()).filter(|who| who != identity).collect();
    if status == LockStatus::Doubtful {
        // One read shows a holder, and not that it leads.
        terms.pop();
        transitions.retain(|transition| !names(transition, &snapshot.holder));
    } else if let Some(last) = terms.last_mut().filter(|last| last.ended.is_none() && last.holder == snapshot.name) {
        last.fencing_token = snapshot.fencing_token;
    }
    let began = terms.first().and_then(|term| term.since).unwrap_or(now);
    transitions.reverse();
    let timeline = Timeline::of(&terms, began, now);
    let page = StatusPage {
        lock: &facts.lock,
        lasted: lasted_so(&snapshot, status, now),
        view,
        role,
        draining,
        // A free lock is in no trouble, but a candidate that cannot take it is.
        tone: if status == LockStatus::Free && snapshot.trouble.is_some() { "bad" } else { status.tone() },
        next_step,
        away: facts.latencies.iter().filter(|_| facts.latencies.len() > 1).filter_map(failure).collect(),
        left: share_left(&snapshot, &facts.timings),
        timings: facts.timings,
        others,
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
            tracing::error!(%error, "cannot render the status page");
            (StatusCode::INTERNAL_SERVER_ERROR, "cannot render the page; see /leader instead\n").into_response()
        }
    }
}

/// The time for which the lock has had this status, as far as that is known; `None` where another part of the page tells it.
fn lasted_so(snapshot: &Snapshot, status: LockStatus, now: DateTime<Utc>) -> Option<Duration> {
    match status {
        LockStatus::Free => snapshot.free_since.map(|since| between(since, now)),
        // The clock of the holder tells of the time before the first read, unless it is ahead.
        LockStatus::Expired if !snapshot.seen_to_change => {
            snapshot.unchanged_for.max(snapshot.renew_time.map(|renewed| between(renewed, now)))
        }
        LockStatus::Expired => snapshot.unchanged_for,
        LockStatus::Unknown(Cause::NotARecord) => snapshot.trouble.as_ref().map(|error| error.failing_for),
        _ => None,
    }
}

fn failure((url, latencies): &(String, Latencies)) -> Option<(&str, String, Duration)> {
    let failure = latencies.failure()?;
    Some((url.as_str(), failure.text, SystemClock.now().saturating_since(failure.since)))
}

fn chart(latencies: &Latencies) -> Option<Chart> {
    let now = SystemClock.now();
    Chart::of(&latencies.last(now), now)
}

/// The time since a term has ended that was not renewed: since the renew deadline of a term of its own, and since the end
/// of the lease of another leader.
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

/// The reason for which the last term is over, although the lock still names its leader. `is_lapsed` tells of this candidate.
fn end_of_term(status: LockStatus, is_lapsed: bool) -> Option<TermEndReason> {
    Some(match status {
        LockStatus::Unknown(Cause::NotARecord) => TermEndReason::Unreadable,
        LockStatus::Unknown(cause) => TermEndReason::Other { name: format!("not known: {cause}"), next: None },
        LockStatus::Free => TermEndReason::Released,
        _ if is_lapsed => TermEndReason::RenewDeadline,
        LockStatus::Expired => TermEndReason::Expired { by: None },
        _ => return None,
    })
}

/// The text of an error, which begins with its cause, as a sentence begins.
fn trouble(error: &LastError) -> String {
    line(capital(&cause::of_error(error)))
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

/// Returns `true` for the news that this holder leads.
fn names(transition: &Transition, holder: &str) -> bool {
    matches!(&transition.change, Change::LeaderChanged { to: Some(leader), .. } if leader == holder)
}

fn is_unknown(view: &View) -> bool {
    matches!(view.status, LockStatus::Unknown(_))
}

/// Tells how long ago a time of the holder's clock was.
fn ago(at: &DateTime<Utc>, now: &DateTime<Utc>) -> String {
    match (*now - *at).to_std() {
        Ok(span) => format!("{} ago", words(&span)),
        Err(_) => format!("{} in the future", words(&between(*now, *at))),
    }
}

/// Formats the time from one moment to another.
fn since(from: &DateTime<Utc>, to: &DateTime<Utc>) -> String {
    words(&between(*from, *to))
}

/// Tells since when there has been an error.
fn lasting(error: &LastError) -> String {
    let last = words(&error.age);
    if error.failing_for > error.age + Duration::from_secs(1) {
        format!("for {}, last {last} ago", words(&error.failing_for))
    } else {
        format!("{last} ago")
    }
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
    fn the_status_doubts_what_is_old() {
        let now = DateTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let fresh = Snapshot {
            name: "a".to_owned(),
            holder: "a".to_owned(),
            client_address: None,
            fencing_token: Some(1.into()),
            leading: false,
            identity: "b".to_owned(),
            acquire_time: None,
            free_since: None,
            preferred_holder: None,
            renew_time: Some(DateTime::UNIX_EPOCH),
            lease_duration: Some(Duration::from_secs(15)),
            age: Some(Duration::from_secs(14)),
            unchanged_for: Some(Duration::from_secs(14)),
            left: None,
            seen_to_change: true,
            of_duplicate: false,
            trouble: None,
        };
        let status = |snapshot: &Snapshot| snapshot.status(Duration::from_secs(15), now);
        assert_eq!(status(&fresh), LockStatus::Led);
        assert_eq!(status(&Snapshot { seen_to_change: false, ..fresh.clone() }), LockStatus::Doubtful);
        let leaderless =
            Snapshot { name: String::new(), unchanged_for: Some(Duration::from_secs(15)), ..fresh.clone() };
        assert_eq!(status(&leaderless), LockStatus::Expired);
        let old = Snapshot { age: Some(Duration::from_secs(16)), ..leaderless.clone() };
        assert_eq!(status(&old), LockStatus::Unknown(Cause::Silent));
        assert_eq!(status(&Snapshot { age: None, ..leaderless.clone() }), LockStatus::Unknown(Cause::NotYet));
        assert_eq!(status(&Snapshot { holder: String::new(), ..leaderless }), LockStatus::Free);
        let ours = Snapshot { name: String::new(), holder: "b".to_owned(), ..fresh };
        assert_eq!(status(&ours), LockStatus::Held);
        assert_eq!(status(&Snapshot { of_duplicate: true, ..ours.clone() }), LockStatus::DuplicateIdentity);
        assert_eq!(status(&Snapshot { name: "b".to_owned(), leading: true, ..ours }), LockStatus::Led);
    }
}
