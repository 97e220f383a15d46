//! `leaderelect status`.

use std::io::Write as _;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use leaderelection::clock::{Clock as _, SystemClock};
use serde::Serialize;

use crate::args::timing::{duration, request_limit};
use crate::exit::{Exit, Failure};
use crate::history::beside;
use crate::lock::OperatorLock;
use crate::lock::status::{Age, LockStatus};
use crate::lock::view::{self, leader_unknown};
use crate::output::escape::escape;
use crate::output::{BOLD, Format, Output};
use crate::survey::Row;
use crate::survey::observe::Observer;
use crate::survey::parts::{self, Part};
use crate::survey::slots;

/// Show who leads a lock
///
///     leaderelect status s3://bucket/locks/scheduler
///
/// One read shows the holder of the lease, but not whether it is alive, because
/// clocks of different machines are not compared. With --watch-for, the command
/// watches until it sees a renewal, or until the lease expires. Without it, an
/// expired lease is recognized only if the store reports the age of its objects,
/// and only 1s or more after the lease's end. If the store reports no ages, the
/// holder's own times are shown as a hint.
///
/// For the URL of `run --slots`, which has no object, the command lists the slots.
/// A lock of a session has no lease of its own: the command shows the session, its
/// last renewal and its lease, and --watch-for watches the session.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// Exit with 1 if nobody leads
    ///
    /// For scripts. Nobody leads if the lease is free, the object does not exist, the lease has expired by the store's clock, or
    /// --watch-for has seen it expire.
    #[arg(long)]
    exit_code: bool,
    /// Watch at most this long for a renewal
    ///
    /// Ends as soon as it is known whether the lease is alive.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    watch_for: Option<Duration>,
    /// Limit the time of a request
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    request_timeout: Duration,
    /// Print text or json
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
struct StatusReport<'a> {
    #[serde(flatten)]
    row: Row,
    /// The slots of `run --slots`, if the URL is that of slots.
    #[serde(skip_serializing_if = "<[Row]>::is_empty")]
    slots: &'a [Row],
    /// The parts, if the lock is made of several.
    #[serde(skip_serializing_if = "<[Part]>::is_empty")]
    parts: &'a [Part],
}

impl StatusReport<'_> {
    /// Returns `true` if no poll shows a leader. The clock of a holder alone shows nothing.
    fn nobody_leads(&self) -> bool {
        !self.row.is_held() && !self.slots.iter().any(Row::is_held)
    }
}

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let mut observer =
        Observer::new(&args.lock, args.request_timeout, args.watch_for.unwrap_or(PERIOD).min(PERIOD)).await?;
    let mut row = observer.next().await.map_err(leader_unknown)?;
    if let Some(watch_for) = args.watch_for {
        let end = SystemClock.now() + watch_for;
        while SystemClock.now() < end && !row.is_conclusive() {
            let left = end.saturating_since(SystemClock.now());
            output.progress(format_args!("waiting for a renewal, at most {} more", view::short(left)));
            row = observer.next().await.map_err(leader_unknown)?;
        }
        output.done();
    }
    row.observed = row.observed.filter(|_| args.watch_for.is_some());
    let slots = match row.view.status {
        LockStatus::Absent => slots::below(&args.lock, args.request_timeout).await,
        _ => Vec::new(),
    };
    if row.view.status == LockStatus::Free {
        row.view = row.view.after(beside::last_term(&args.lock, request_limit(args.request_timeout)).await.as_ref());
    }
    let parts = parts::of(&args.lock, &row.view, args.request_timeout).await;
    let of_parts = parts.iter().filter(|part| part.agrees).find_map(|part| part.view.parts_that_may_be_hostile);
    row.view.parts_that_may_be_hostile = row.view.parts_that_may_be_hostile.or(of_parts);
    let report = StatusReport { row, slots: &slots, parts: &parts };
    match args.output {
        Format::Json => output.json(&report)?,
        Format::Text => print(&report, output)?,
    }
    Ok(match report.row.view.status {
        LockStatus::Unknown(_) => Exit::NotARecord,
        _ if args.exit_code && report.nobody_leads() => Exit::NobodyLeads,
        _ => Exit::Done,
    })
}

fn print(report: &StatusReport<'_>, output: &Output) -> Result<(), Failure> {
    let StatusReport { row, slots, parts } = report;
    let Row { view, observed, store_age, .. } = row;
    let mut out = output.stdout();
    writeln!(out, "{BOLD}{}{BOLD:#}", view.lock)?;
    let mut line = |name: &str, style: Style, text: Option<String>| match text {
        Some(text) => writeln!(out, "  {name:<15}{style}{}{style:#}", escape(text)),
        None => Ok(()),
    };
    let (plain, good, bad) = (Style::new(), colour(AnsiColor::Green), colour(AnsiColor::Yellow));
    let is_good = view.status.is_led() || slots.iter().any(|slot| slot.view.status.is_led());
    let status = if slots.is_empty() { view.to_string() } else { slots::in_words(slots) };
    line("status", if is_good { good } else { bad }, Some(status))?;
    line("problem", bad, view.problem.clone())?;
    let of = if view.holder.is_some() { "" } else { " (of the last term)" };
    line("fencing token", plain, view.fencing_token.map(|token| format!("{token}{of}")))?;
    line("address", plain, view.leader_address.clone())?;
    line("rank", plain, view.leader_rank.map(|rank| rank.to_string()))?;
    let parts_of = view.part_of.as_ref().map(|parts| format!("{parts}; --lock for each shows who leads"));
    line("part of", plain, parts_of)?;
    line("purpose", plain, view.purpose.clone())?;
    let jobs = (!view.completed_jobs.is_empty()).then(|| view.completed_jobs.join(", "));
    line("jobs done", plain, jobs)?;
    if let Some(session) = &view.session {
        line("session", plain, Some(session.id.clone()))?;
        let progress = session.object.as_ref().and_then(|object| object.progress.as_ref());
        line("session's work", plain, progress.map(view::work))?;
    }
    if view.by_holders_clock.is_some() {
        let now = SystemClock.wall_time();
        let (first, second) = if view.holder.is_some() { ("since", "renewed") } else { ("free since", "") };
        let whose = if view.holder.is_some() { "the holder's" } else { "the last holder's" };
        for (name, time) in [(first, view.since()), (second, view.renewed())] {
            let told = |time| format!("{} ({}, by {whose} clock)", view::time(time), view::ago(time, now));
            line(name, plain, time.filter(|_| !name.is_empty()).map(told))?;
        }
    }
    if let (Some(lease), Some(_)) = (view.lease(), &view.holder) {
        line("lease", plain, Some(humantime::format_duration(lease).to_string()))?;
        line("age", plain, store_age.map(|age| format!("{} by the store's clock", view::short(age))))?;
        line("time left", plain, Some(time_left(view.status, *observed, lease)))?;
    }
    line("hostile parts", plain, view.parts_that_may_be_hostile.map(parts::hostile))?;
    for (number, part) in parts.iter().enumerate() {
        let name = if number == 0 { "parts" } else { "" };
        line(name, if part.agrees { good } else { bad }, Some(part.to_string()))?;
    }
    let all = if slots.is_empty() { std::slice::from_ref(row) } else { *slots };
    line("next step", plain, all.iter().find_map(|row| row.view.next_step()))?;
    Ok(())
}

/// Returns the known time until the end of the lease as text.
fn time_left(status: LockStatus, observed: Option<Age>, lease: Duration) -> String {
    let lease = humantime::format_duration(lease);
    let unchanged = observed.map(|age| view::short(age.unchanged_for)).unwrap_or_default();
    match observed.map(|age| age.left.map(view::short)) {
        _ if status == LockStatus::Expired => "none: the next candidate takes over".to_owned(),
        None => format!("unknown after one read; use --watch-for {lease}"),
        Some(Some(left)) => format!("{left} unless renewed (last renewal seen {unchanged} ago)"),
        Some(None) => {
            format!("unknown: not renewed for {unchanged}, and the lease is {lease}; use a longer --watch-for")
        }
    }
}

fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
}
