//! `leaderelect list`.

mod table;

use std::io::Write as _;
use std::time::Duration;

use leaderelection::clock::{Clock as _, SystemClock};

use crate::args::timing::duration;
use crate::cause::Cause;
use crate::exit::{Exit, Failure};
use crate::lock::PrefixUrl;
use crate::lock::status::LockStatus;
use crate::lock::view::{self, View, leader_unknown};
use crate::output::{Format, Output};
use crate::survey::{Row, Scanner};

/// List all locks under a prefix
///
///     leaderelect list s3://bucket/locks/
///
/// STATE is one of
///
///   held          a candidate holds the lease
///   alive         with --watch-for: the holder renews
///   handing over  the holder is asked to hand over
///   free          nobody leads
///   failed        nobody leads; by the history of the lock, the last work failed
///   expired       the lease ended at least 1s ago by the store's clock, or with
///                 --watch-for: no renewal came for a whole lease
///   stale?        the lease seems over by comparing two machines' clocks, because
///                 the store reports no ages; use --watch-for to find out
///
/// or `cannot be read` or `not a record`. If the watch was too short, STATE stays
/// held or stale?.
///
/// SINCE and RENEWED come from the holders' clocks. A lock that a session holds
/// is shown with the session, its lease and its last renewal. --sessions lists the
/// sessions, in folders sessions/: who opened them, and how many of the listed
/// locks each leads. Objects of probes, in folders leaderelection-probe/, are not
/// shown.
///
/// On a narrow terminal, long names are cut, and then columns are left out. Names
/// of more than 256 characters are always cut. -o json shows everything.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// List the locks under this prefix
    ///
    /// A URL such as s3://bucket/locks/ or file:///directory/.
    #[arg(value_name = "PREFIX-URL", value_parser = PrefixUrl::parser())]
    prefix: PrefixUrl,
    /// List the sessions instead of the locks
    #[arg(long)]
    sessions: bool,
    /// Watch at most this long for renewals
    ///
    /// Ends as soon as it is known which leases are alive. Each poll costs one listing, and one read of each lock that has
    /// changed.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "sessions")]
    watch_for: Option<Duration>,
    /// Limit the time of a request
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    request_timeout: Duration,
    /// Print text or json
    ///
    /// json is one object per line.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  All locks of a bucket:
    leaderelect list s3://bucket
  The sessions of a fleet, for a program:
    leaderelect list --sessions --output json s3://bucket/fleet/";
/// The pause between two polls.
const PERIOD: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let mut survey = Scanner::open(args.prefix.clone(), args.request_timeout).await?;
    survey.scan(|read, count| output.progress(format_args!("read {read} of {count}"))).await.map_err(leader_unknown)?;
    if let Some(watch_for) = args.watch_for {
        watch(&mut survey, watch_for, output).await?;
    }
    output.done();
    let (locks, sessions) = (survey.locks(), survey.sessions());
    let shown = if args.sessions { sessions.len() } else { locks.len() };
    let (what, now) = (if args.sessions { "sessions" } else { "locks" }, SystemClock.wall_time());
    match args.output {
        Format::Json if args.sessions => sessions.iter().try_for_each(|session| output.json(session))?,
        Format::Json => locks.iter().try_for_each(|lock| output.json(lock))?,
        Format::Text if shown == 0 => output.say(format_args!("no {what} under {}{}", args.prefix, because(&args))),
        Format::Text if args.sessions => writeln!(output.stdout(), "{}", table::of_sessions(&sessions, now))?,
        Format::Text => writeln!(output.stdout(), "{}", table::of_locks(&locks, now, output.width()))?,
    }
    let is_unreachable = |status| matches!(status, LockStatus::Unknown(cause) if cause != Cause::NotARecord);
    let unreachable: Vec<_> = locks.iter().filter(|lock| is_unreachable(lock.view.status)).collect();
    if let Some(Row { view, .. }) = unreachable.first().filter(|_| unreachable.len() == locks.len() + sessions.len()) {
        return Err(Failure::new(Exit::Unavailable, view.advised(view.with_problem())));
    }
    if args.output == Format::Text {
        tell_trouble(&locks, output);
    }
    Ok(Exit::Done)
}

/// Tells what to do about the first lock in each kind of trouble, and how many locks have the same.
fn tell_trouble(locks: &[Row], output: &Output) {
    let mut kinds: Vec<(&View, usize)> = Vec::new();
    for Row { view, .. } in locks.iter().filter(|lock| lock.view.status.is_trouble()) {
        match kinds.iter_mut().find(|(first, _)| first.status == view.status) {
            Some((_, others)) => *others += 1,
            None => kinds.push((view, 0)),
        }
    }
    for (first, others) in kinds {
        let others = match others {
            0 => String::new(),
            1 => "; 1 other lock has the same trouble".to_owned(),
            others => format!("; {others} other locks have the same trouble"),
        };
        output.say(format_args!("{}: {}{others}", first.lock, first.advised(first.with_problem())));
    }
}

/// The reason for an empty list that is most likely a mistake of the person who asked.
fn because(args: &Args) -> String {
    let missing = args.prefix.missing_directory();
    missing.map(|path| format!(": directory {} not found", path.display())).unwrap_or_default()
}

/// Looks again until it is known which leases are alive.
async fn watch(survey: &mut Scanner, watch_for: Duration, output: &Output) -> Result<(), Failure> {
    let end = SystemClock.now() + watch_for;
    loop {
        let open = survey.locks().iter().filter(|lock| !lock.is_conclusive()).count();
        let left = end.saturating_since(SystemClock.now());
        if open == 0 || left.is_zero() {
            return Ok(());
        }
        let left = left.min(watch_for);
        output.progress(format_args!("watching {open} locks, for another {} at most", view::short(left)));
        tokio::time::sleep(PERIOD.min(left)).await;
        survey.scan(|_, _| {}).await?;
    }
}
