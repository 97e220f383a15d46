//! `leaderelect list`.

mod found;
mod table;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::{Bounded, ConditionalStore, ListedObject};

use leaderelection_conformance::is_object_of_probe;

use self::found::Found;
use crate::exit::{Exit, Failure};
use crate::lock::PrefixUrl;
use crate::output::{Format, Output};
use crate::timing::{duration, request_limit};
use crate::view::State;

/// Show all locks under a prefix, as `kubectl get leases` does
///
/// Objects of probes, in folders leaderelection-probe/, are not shown.
///
/// A lock that a session holds is shown with the session, and with the session's lease and last renewal. Sessions,
/// in folders sessions/, are shown with --sessions: who opened them, and how many of the listed locks each leads.
///
/// SINCE and RENEWED are by the clocks of the holders, and are only as accurate as those clocks. To find out
/// whether a holder is alive, use `leaderelect status --watch-for`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The common prefix of the locks, such as s3://bucket/locks/ or file:///directory/
    #[arg(value_name = "PREFIX-URL", value_parser = PrefixUrl::parser())]
    prefix: PrefixUrl,
    /// Show the sessions in place of the locks
    #[arg(long)]
    sessions: bool,
    /// The longest time for one request
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    request_timeout: Duration,
    /// The output format: json is one object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  All locks of a bucket:
    leaderelect list s3://bucket
  The sessions of a fleet, for a program:
    leaderelect list --sessions --output json s3://bucket/fleet/";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let store = Bounded::new(args.prefix.open().await?, request_limit(args.request_timeout));
    let store: Arc<dyn ConditionalStore> = Arc::new(store);
    let mut keys = ListedObject::keys(store.list(args.prefix.prefix()).await?);
    keys.retain(|key| !is_object_of_probe(key));
    let Found { locks, sessions } = Found::read(&args.prefix, &store, keys, output).await;
    output.done();
    let shown = if args.sessions { sessions.len() } else { locks.len() };
    let (what, now) = (if args.sessions { "sessions" } else { "locks" }, SystemClock.wall_time());
    match args.output {
        Format::Json if args.sessions => sessions.iter().try_for_each(|session| output.json(session))?,
        Format::Json => locks.iter().try_for_each(|(_, view)| output.json(view))?,
        Format::Text if shown == 0 => output.say(format_args!("no {what} under {}", args.prefix)),
        Format::Text if args.sessions => writeln!(output.stdout(), "{}", table::of_sessions(&sessions, now))?,
        Format::Text => writeln!(output.stdout(), "{}", table::of_locks(&locks, now))?,
    }
    let mut unreachable = locks.iter().filter(|(_, view)| view.state == State::Unreachable).peekable();
    let problem = unreachable.peek().and_then(|(_, view)| view.problem.clone()).unwrap_or_default();
    match unreachable.count() {
        0 => Ok(Exit::Done),
        failed if failed < locks.len() + sessions.len() => {
            if args.output == Format::Text {
                output.say(problem);
            }
            Ok(Exit::Done)
        }
        _ => Err(Failure::new(Exit::Unavailable, problem)),
    }
}
