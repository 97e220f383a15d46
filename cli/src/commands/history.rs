//! `leaderelect history`.

use std::io::Write as _;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use comfy_table::{Cell, CellAlignment};
use leaderelection::LeaderElectionRecord;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::history::EndedTerm;
use leaderelection::implement::VersionedObject;
use serde::Serialize;

use crate::args::timing::duration;
use crate::exit::{Exit, Failure};
use crate::history::{self, Term, beside};
use crate::lock::{LockUrl, OperatorLock};
use crate::output::escape::{LONGEST_NAME, cut};
use crate::output::table::{cell, text};
use crate::output::{BOLD, Format, Output};

/// Show who led when, and why each term ended
///
///     leaderelect history s3://bucket/locks/scheduler
///
/// A lock has a history if its candidates run with --keep-history: one object
/// beside the lock, with the last terms. A lock with one object per write, such as
/// sequenced+file:///directory/name?keep=1000 or any lock on oss:// or cos://, also
/// keeps its last writes; `keep` sets how many.
///
/// SINCE and UNTIL come from the holders' clocks. UNTIL is the end of the term,
/// or its last known renewal. ENDED is the reason that the holder recorded. After
/// a crash, the next holder records `expired`. If nobody recorded a reason and the
/// lock keeps its last writes, the first write after the term shows why it ended.
/// The last term may have expired since: see `leaderelect status`.
///
/// If --lock is given several times, each of these locks is shown separately: a
/// term had a leader only if a majority of them shows it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// Limit the total time
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    time_limit: Duration,
    /// Print text or json
    ///
    /// json is one object per line.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  For a program:
    leaderelect history -o json s3://bucket/locks/scheduler";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let parts = args.lock.parts();
    let end = SystemClock.now() + args.time_limit;
    let mut exit = Exit::Done;
    for part in parts {
        // A part that is away hides no other.
        let Known { writes, history, now } = match known(part, end, output).await {
            Ok(known) => known,
            Err(failure) if parts.len() > 1 => {
                output.warn(format_args!("{part}: {failure}"));
                exit = failure.exit;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let mut terms = history::terms(writes.as_deref().unwrap_or_default());
        history::join(&mut terms, history.as_deref().unwrap_or_default());
        history::complete(&mut terms, now.as_ref());
        let lock = (parts.len() > 1).then_some(part);
        match args.output {
            Format::Json => {
                terms.iter().try_for_each(|term| output.json(&TermLine { lock: lock.map(LockUrl::to_string), term }))?
            }
            Format::Text if terms.is_empty() => output.say(format_args!("{part} has no past term")),
            Format::Text => print(lock, &terms, writes.as_deref(), output)?,
        }
    }
    Ok(exit)
}

/// A line of JSON: a term, and the part of the lock that has kept it, if the lock is made of several.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TermLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    #[serde(flatten)]
    term: &'a Term,
}

/// The facts that a lock and its store tell of its terms.
struct Known {
    /// The kept writes, if the store keeps any.
    writes: Option<Vec<VersionedObject>>,
    /// The history beside the lock, if there is one.
    history: Option<Vec<EndedTerm>>,
    /// The record, if there is one.
    now: Option<LeaderElectionRecord>,
}

async fn known(lock: &LockUrl, end: LocalInstant, output: &Output) -> Result<Known, Failure> {
    output.progress(format_args!("reading the history of {lock}"));
    let known = tokio::select! {
        biased;
        known = read(lock) => known?,
        _ = SystemClock.sleep_until(end) => {
            let message = format!(
                "{lock}: the store did not answer in time; check it and the network, or set a longer --time-limit"
            );
            return Err(Failure::new(Exit::Unavailable, message));
        }
    };
    // Not before the first answer: a disk that hangs would hang this, too, and the read has a limit.
    lock.must_have_directory()?;
    output.done();
    if known.writes.is_none() && known.history.is_none() {
        return Err(keeps_none(lock));
    }
    Ok(known)
}

async fn read(lock: &LockUrl) -> Result<Known, Failure> {
    let writes = lock.location().history().await?;
    let (opened, target) = (lock.open_to_read().await?, lock.target(None).await?);
    let history = beside::read(opened.store(), opened.key()).await?;
    // What is no record is a matter of `status`.
    let now = target.get().await.ok().flatten().map(|found| found.record);
    Ok(Known { writes, history, now })
}

fn keeps_none(lock: &LockUrl) -> Failure {
    Failure::usage(match lock.is_lease() {
        true => format!("{lock}: a Kubernetes Lease has no history; to follow it from now on, use `leaderelect watch`"),
        false => format!("{lock}: no history was recorded; start its candidates with --keep-history 100"),
    })
}

fn print(
    lock: Option<&LockUrl>,
    terms: &[Term],
    writes: Option<&[VersionedObject]>,
    output: &Output,
) -> Result<(), Failure> {
    let row = |term: &Term| {
        vec![
            Cell::new(cut(&term.holder, LONGEST_NAME)),
            cell(term.fencing_token).set_alignment(CellAlignment::Right),
            cell(term.since.map(shown)),
            cell(term.until().map(shown)),
            cell(term.ended.as_ref().map(|why| cut(&why.to_string(), LONGEST_NAME))),
            Cell::new(cut(&term.work(), LONGEST_NAME)),
        ]
    };
    let mut out = output.stdout();
    if let Some(lock) = lock {
        writeln!(out, "{BOLD}{lock}{BOLD:#}")?;
    }
    writeln!(out, "{}", text(["HOLDER", "TOKEN", "SINCE", "UNTIL", "ENDED", "RESULT"], terms.iter().map(row)))?;
    if let Some(writes) = writes {
        output.say(format_args!("{} kept writes", writes.len()));
    }
    Ok(out.flush()?)
}

fn shown(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
