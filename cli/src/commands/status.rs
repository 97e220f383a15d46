//! `leaderelect status`.

use std::io::Write as _;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use leaderelection::clock::{Clock as _, SystemClock};
use serde::Serialize;

use crate::args::timing::duration;
use crate::exit::{Exit, Failure};
use crate::lock::OperatorLock;
use crate::lock::view::{self, State, View, as_seconds};
use crate::output::plain::plain;
use crate::output::{BOLD, Format, Output};
use crate::survey::Row;
use crate::survey::doubt::Doubt;
use crate::survey::observe::{Age, Look, Observer};
use crate::survey::parts::{self, Part};
use crate::survey::slots;

/// Show the current leader
///
/// One read shows the holder of the lease, but not whether the holder is alive, because clocks of different
/// machines are not compared. An observer has to watch until it sees a renewal, or until it sees the lease
/// expire: use --watch-for. A store that tells how old the lease is by its own clock shows that at once: the age. Of
/// other stores, the holder's own clock is a hint.
///
/// Of the URL of `run --slots`, at which there is no object, the command shows the slots. This costs a listing.
///
/// A lock of a session has no lease of its own. The command shows the session, when the session was last renewed,
/// and the lease of the session. --watch-for watches the session.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// For scripts: exit with 1 if nobody leads, because the lease is free, there is no object, the lease is over by the
    /// store's clock, or --watch-for saw the lease expire
    #[arg(long)]
    exit_code: bool,
    /// Watch until it is known whether the lease is alive, but no longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    watch_for: Option<Duration>,
    /// The longest time for one request
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    request_timeout: Duration,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  The leader, and whether its lease is alive:
    leaderelect status --watch-for 20s s3://bucket/locks/scheduler
  For a script:
    leaderelect status --exit-code --watch-for 20s s3://bucket/locks/scheduler
  For a program:
    leaderelect status --output json s3://bucket/locks/scheduler";

/// The interval between two reads of a watched lock.
const PERIOD: Duration = Duration::from_millis(500);

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    view: &'a View,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<Age>,
    /// The age of the last renewal by the store's clock.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_seconds", rename = "storeAgeSeconds")]
    store_age: Option<Duration>,
    /// The slots of `run --slots`, if the URL is that of slots.
    #[serde(skip_serializing_if = "<[Row]>::is_empty")]
    slots: &'a [Row],
    /// The parts, if the lock is made of several.
    #[serde(skip_serializing_if = "<[Part]>::is_empty")]
    parts: &'a [Part],
}

impl Report<'_> {
    fn has_expired(&self) -> bool {
        self.observed.is_some_and(|age| age.expired)
    }

    /// A sign that the holder is dead, unless it was seen to renew.
    fn doubt(&self) -> Option<Doubt> {
        let was_seen_to_renew = self.observed.is_some_and(|age| age.left.is_some());
        self.view.doubt(self.store_age, SystemClock.wall_time()).filter(|_| !was_seen_to_renew)
    }

    /// Returns `true` if no look shows a leader. The clock of a holder alone shows nothing.
    fn nobody_leads(&self) -> bool {
        let is_over = self.has_expired() || matches!(self.doubt(), Some(Doubt::ByStore(_)));
        (self.view.holder.is_none() || is_over) && !self.slots.iter().any(Row::is_held)
    }
}

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let mut observer =
        Observer::new(&args.lock, args.request_timeout, args.watch_for.unwrap_or(PERIOD).min(PERIOD)).await?;
    let mut look = observer.next().await?;
    if let Some(watch_for) = args.watch_for {
        let end = SystemClock.now() + watch_for;
        while SystemClock.now() < end && !look.is_conclusive() {
            let left = end.saturating_since(SystemClock.now());
            output.progress(format_args!("watching for a renewal, for another {} at most", view::short(left)));
            look = observer.next().await?;
        }
        output.done();
    }
    let Look { mut view, age, store_age } = look;
    let observed = age.filter(|_| args.watch_for.is_some());
    let slots = match view.state {
        State::Absent => slots::below(&args.lock, args.request_timeout).await,
        _ => Vec::new(),
    };
    let parts = parts::of(&args.lock, &view, args.request_timeout).await;
    let of_parts = parts.iter().filter(|part| part.agrees).find_map(|part| part.view.parts_that_may_be_hostile);
    view.parts_that_may_be_hostile = view.parts_that_may_be_hostile.or(of_parts);
    let report = Report { view: &view, observed, store_age, slots: &slots, parts: &parts };
    match args.output {
        Format::Json => output.json(&report)?,
        Format::Text => print(&report, output)?,
    }
    Ok(match view.state {
        State::Unreadable => Exit::NotARecord,
        _ if args.exit_code && report.nobody_leads() => Exit::NobodyLeads,
        _ => Exit::Done,
    })
}

fn print(report: &Report<'_>, output: &Output) -> Result<(), Failure> {
    let &Report { view, observed, store_age, slots, parts } = report;
    let mut out = output.stdout();
    writeln!(out, "{BOLD}{}{BOLD:#}", view.lock)?;
    let mut line = |name: &str, style: Style, text: Option<String>| match text {
        Some(text) => writeln!(out, "  {name:<15}{style}{}{style:#}", plain(text)),
        None => Ok(()),
    };
    let (plain, good, bad) = (Style::new(), colour(AnsiColor::Green), colour(AnsiColor::Yellow));
    let (expired, doubt) = (report.has_expired(), report.doubt());
    let style = if report.nobody_leads() || doubt.is_some() { bad } else { good };
    let what = if view.session.is_some() { "session" } else { "lease" };
    let leader = match (&view.holder, doubt) {
        (Some(holder), _) if expired => format!("nobody: the {what} of {holder} has run out"),
        (Some(holder), Some(doubt @ Doubt::ByStore(_))) => {
            format!("nobody: {holder} {doubt}, and the {what} has run out")
        }
        (Some(holder), Some(doubt @ Doubt::ByHolder(_))) => {
            format!("not known: {holder} holds the {what}, but {doubt}")
        }
        _ if !slots.is_empty() => slots::in_words(slots),
        _ => view.leader().to_owned(),
    };
    line("leader", style, Some(leader))?;
    line("problem", bad, view.problem.clone())?;
    let of = if view.holder.is_some() { "" } else { " (of the last term)" };
    line("fencing token", plain, view.fencing_token.map(|token| format!("{token}{of}")))?;
    line("address", plain, view.leader_address.clone())?;
    line("rank", plain, view.leader_rank.map(|rank| rank.to_string()))?;
    let parts_of = view.part_of.as_ref().map(|parts| format!("{parts}; --lock for each shows who leads"));
    line("part of", plain, parts_of)?;
    line("purpose", plain, view.purpose.clone())?;
    let next = view.preferred_holder.as_ref().map(|next| format!("{next} (a handover was asked for)"));
    line("next leader", plain, next)?;
    let jobs = (!view.completed_jobs.is_empty()).then(|| view.completed_jobs.join(", "));
    line("jobs done", plain, jobs)?;
    if let Some(session) = &view.session {
        let ended =
            if session.has_ended() { format!(" (ended; it was that of {})", session.holder) } else { String::new() };
        line("session", plain, Some(format!("{}{ended}", session.id)))?;
        let progress = session.object.as_ref().and_then(|object| object.progress.as_ref());
        line("session's work", plain, progress.map(view::work))?;
    }
    if let Some(times) = view.by_holders_clock {
        let now = SystemClock.wall_time();
        let (first, second) = if view.holder.is_some() { ("since", "renewed") } else { ("free since", "") };
        let whose = if view.holder.is_some() { "the holder's" } else { "the last holder's" };
        for (name, time) in [(first, times.acquire_time), (second, view.renewed())] {
            let told = |time| format!("{} ({}, by {whose} clock)", view::time(time), view::ago(time, now));
            line(name, plain, time.filter(|_| !name.is_empty()).map(told))?;
        }
    }
    if let (Some(lease), Some(_)) = (view.lease(), &view.holder) {
        line("lease", plain, Some(humantime::format_duration(lease).to_string()))?;
        let is_old = matches!(view.doubt(store_age, SystemClock.wall_time()), Some(Doubt::ByStore(_)));
        if let Some(age) = store_age {
            let (style, verdict) = if is_old { (bad, ", so its holder does not renew it") } else { (plain, "") };
            line("age", style, Some(format!("{} by the store's clock{verdict}", view::short(age))))?;
        }
        let (is_bad, text) = match observed {
            None if is_old => (true, "none by the store's clock, so the next candidate takes over".to_owned()),
            _ => time_left(observed, lease),
        };
        line("time left", if is_bad { bad } else { plain }, Some(text))?;
    }
    line("hostile parts", plain, view.parts_that_may_be_hostile.map(parts::hostile))?;
    for (number, part) in parts.iter().enumerate() {
        let name = if number == 0 { "parts" } else { "" };
        line(name, if part.agrees { good } else { bad }, Some(part.to_string()))?;
    }
    Ok(())
}

/// Returns the known time until the end of the lease as text, and `true` if the text is bad news.
fn time_left(observed: Option<Age>, lease: Duration) -> (bool, String) {
    let lease = humantime::format_duration(lease);
    let Some(Age { unchanged_for, left, expired, .. }) = observed else {
        return (false, format!("one look does not tell; an observer must watch: --watch-for {lease}"));
    };
    let unchanged = view::short(unchanged_for);
    let text = match left.map(view::short) {
        _ if expired => format!("none: not renewed for {unchanged}, so the next candidate takes over"),
        Some(left) => format!("{left}, unless it is renewed: a renewal was seen {unchanged} ago"),
        None => format!("unknown: not renewed for {unchanged}, and the lease is {lease}; watch longer"),
    };
    (expired, text)
}

fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
}
