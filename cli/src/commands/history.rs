//! `leaderelect history`.

mod terms;

use std::io::Write as _;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use comfy_table::{Cell, CellAlignment, Table, presets};
use leaderelection::VersionedObject;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use serde::Serialize;

use self::terms::{Term, terms};
use crate::args::timing::duration;
use crate::exit::{Exit, Failure};
use crate::lock::{LockUrl, OperatorLock};
use crate::output::plain::{LONGEST_NAME, cut};
use crate::output::{BOLD, Format, Output};

/// Show who led when, and why each term ended
///
/// Only a lock with one object per write keeps its history, such as
/// sequenced+file:///directory/name?keep=1000, and every lock of oss:// and cos://. The candidates choose with keep how many
/// writes stay. At one renewal in 2s, 1000 writes are half an hour; a term whose renewals are gone is not shown.
///
/// SINCE and RENEWED are by the clocks of the holders. ENDED comes from the records: a release, by the holder or
/// by an operator; a handover, which names the next leader; a takeover, which is possible only when the lease has
/// expired; a deletion. The last term may have expired since: `leaderelect status` shows that. Of a lock that is made of
/// several, each is shown by itself: only a term that a majority shows had a leader.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// The longest time for the whole history
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    time_limit: Duration,
    /// The output format: json is one object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  The terms of a lock, oldest first:
    leaderelect history sequenced+file:///var/lib/my-service/scheduler
  For a program:
    leaderelect history -o json sequenced+file:///var/lib/my-service/scheduler";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let parts = args.lock.parts();
    let end = SystemClock.now() + args.time_limit;
    let mut exit = Exit::Done;
    for part in parts {
        // A part that is away hides no other.
        let kept = match kept(part, end, output).await {
            Ok(kept) => kept,
            Err(failure) if parts.len() > 1 => {
                output.warn(format_args!("{part}: {failure}"));
                exit = failure.exit;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let terms = terms(&kept);
        let lock = (parts.len() > 1).then_some(part);
        match args.output {
            Format::Json => {
                terms.iter().try_for_each(|term| output.json(&Line { lock: lock.map(LockUrl::to_string), term }))?
            }
            Format::Text if terms.is_empty() => output.say(format_args!("no term of {part} is kept")),
            Format::Text => print(lock, &terms, &kept, output)?,
        }
    }
    Ok(exit)
}

/// A line of JSON: a term, and the part of the lock that has kept it, if the lock is made of several.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    #[serde(flatten)]
    term: &'a Term,
}

async fn kept(lock: &LockUrl, end: LocalInstant, output: &Output) -> Result<Vec<VersionedObject>, Failure> {
    lock.must_have_directory()?;
    output.progress(format_args!("reading the history of {lock}"));
    let kept = tokio::select! {
        biased;
        kept = lock.location().history() => kept?,
        _ = SystemClock.sleep_until(end) => {
            let message = format!("{lock} did not answer in time; give it a longer --time-limit");
            return Err(Failure::new(Exit::Unavailable, message));
        }
    };
    output.done();
    kept.ok_or_else(|| keeps_none(lock))
}

fn keeps_none(lock: &LockUrl) -> Failure {
    Failure::usage(format!(
        "{lock} keeps no history: every write replaces the record before it; a history needs a lock with one object per \
         write, such as sequenced+file:///directory/name?keep=1000, or one on oss:// or cos://"
    ))
}

fn print(lock: Option<&LockUrl>, terms: &[Term], kept: &[VersionedObject], output: &Output) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["HOLDER", "TOKEN", "SINCE", "RENEWED", "ENDED"]);
    for term in terms {
        table.add_row([
            Cell::new(cut(&term.holder, LONGEST_NAME)),
            Cell::new(term.fencing_token).set_alignment(CellAlignment::Right),
            Cell::new(shown(term.since)),
            Cell::new(shown(term.renewed)),
            Cell::new(cut(&term.ended.to_string(), LONGEST_NAME)),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    let mut out = output.stdout();
    if let Some(lock) = lock {
        writeln!(out, "{BOLD}{lock}{BOLD:#}")?;
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    output.say(format_args!("{} kept writes", kept.len()));
    Ok(out.flush()?)
}

fn shown(time: Option<DateTime<Utc>>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
}
