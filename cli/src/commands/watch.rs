//! `leaderelect watch`.

mod cloud_event;
mod hook;
mod parts;
mod post;
#[cfg(unix)]
mod reader;

use std::ffi::OsString;
use std::io::Write as _;
use std::time::Duration;

use clap::ValueEnum;
use leaderelection::clock::{Clock as _, SystemClock};
use serde::Serialize;

use self::cloud_event::Numbers;
use self::post::Poster;
use crate::args::timing::{duration, pause};
use crate::exit::{Exit, Failure};
use crate::lock::OperatorLock;
use crate::lock::status::LockStatus;
use crate::lock::view::{self, View, leader_unknown};
use crate::output::Output;
use crate::output::escape::escape;
use crate::survey::observe::Observer;
use crate::survey::{Row, slots};

/// Follow a lock: print every change of leader
///
///     leaderelect watch s3://bucket/locks/scheduler
///
/// Prints one line, or one JSON object, for every change. The command polls the
/// lock, so a change that is undone between two reads is not seen. Times are when
/// this machine saw the change. If --lock is given several times, every tenth poll
/// reads each of these locks alone, to tell which are unavailable. If a session
/// holds the lock, the command reads the session too (two requests per poll), and
/// shows its renewals and its end.
///
/// With a command after `--`, runs it for every change, one at a time, with the
/// change in its environment: LEADERELECTION_EVENT (such as leading, expired,
/// free), LEADERELECTION_LEADER (empty if nobody leads),
/// LEADERELECTION_FENCING_TOKEN, LEADERELECTION_LOCK and LEADERELECTION_TIME. If
/// several changes occur while it runs, it runs once more, for the last one. A
/// command that fails is reported, and does not end the watch.
#[derive(Debug, clap::Args)]
#[command(override_usage = "leaderelect watch [OPTIONS] <URL> [-- <COMMAND>...]")]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// Poll the lock this often
    ///
    /// Each read is a request.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = pause)]
    interval: Duration,
    /// Show renewals too
    #[arg(long)]
    renewals: bool,
    /// Limit the time of a request
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    request_timeout: Duration,
    /// Print text|json|cloudevents
    ///
    /// json is one object per line; cloudevents is one CloudEvent 1.0 per line, as JSON, whose type is
    /// `leaderelection.` followed by the event.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
    /// Send every change to this webhook
    ///
    /// POSTs a CloudEvent in structured mode for each change, in order. Without an answer, or after 408, 429 or 5xx, a request is
    /// sent up to five times, after 1, 2, 4 and 8 seconds. A change that is not accepted is reported, and does not end the
    /// watch. Messages show only the host of the URL.
    #[arg(long, value_name = "URL")]
    post: Option<Hidden>,
    /// Run this command for every change
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  Renewals as well, for a program:
    leaderelect watch --renewals --output json s3://bucket/locks/scheduler
  Every change as a CloudEvent, to a receiver whose URL is a secret:
    LEADERELECT_POST=https://hooks.example.com/secret \\
        leaderelect watch s3://bucket/locks/scheduler
  Notify a chat of every new leader:
    leaderelect watch s3://bucket/locks/scheduler -- \\
        sh -c 'notify \"$LEADERELECTION_EVENT: $LEADERELECTION_LEADER\"'";

/// The format in which a change is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs: one JSON object per line
    Json,
    /// For programs: one CloudEvent 1.0 per line, as JSON, whose type is leaderelection. and the event
    #[value(name = "cloudevents")]
    CloudEvents,
}

/// A text that may have a secret.
#[derive(Clone)]
struct Hidden(String);

impl From<&str> for Hidden {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden")
    }
}

/// The events that are no status.
const RENEWED: &str = "renewed";
const REACHABLE: &str = "reachable";

/// A change. The event is in the words of programs.
#[derive(Serialize)]
struct ChangeLine<'a> {
    /// A CloudEvent has the time outside of its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'a str>,
    event: &'static str,
    #[serde(flatten)]
    view: &'a View,
}

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    #[cfg(unix)]
    let unread = reader::gone();
    #[cfg(not(unix))]
    let unread = std::future::pending();
    tokio::select! {
        biased;
        () = unread => Ok(Exit::Done),
        result = follow(args, output) => result,
    }
}

async fn follow(args: Args, output: &Output) -> Result<Exit, Failure> {
    let poster = args.post.as_ref().map(|url| Poster::start(&url.0, args.request_timeout, output)).transpose()?;
    let mut teller = Teller { args: &args, poster, numbers: Numbers::new(), output };
    let mut observer = Observer::new(&args.lock, args.request_timeout, args.interval).await?;
    // A wrong URL is reported at once. Later, the store may become unreachable and come back.
    let Row { view: first, .. } = observer.next().await.map_err(leader_unknown)?;
    if first.status == LockStatus::Absent {
        let slots = slots::below(&args.lock, args.request_timeout).await;
        if !slots.is_empty() {
            output.say(format_args!(
                "this is the URL of slots: {}; watch {}",
                slots::in_words(&slots),
                slots[0].view.lock
            ));
        }
    }
    teller.tell(event(&first), &first).await?;
    tokio::select! {
        never = parts::follow(&args.lock, &first, args.interval, args.request_timeout, output) => match never {},
        result = tell_changes(&mut observer, &mut teller, first.clone()) => result,
    }
}

/// Tells every change after a first view.
async fn tell_changes(observer: &mut Observer<'_>, teller: &mut Teller<'_>, first: View) -> Result<Exit, Failure> {
    // The status while the store is of no use.
    let (mut last, mut unreachable) = (first, None);
    loop {
        match observer.next().await {
            Err(failure) => {
                let view = View::unreachable(&teller.args.lock, &failure);
                if unreachable.replace(view.status) != Some(view.status) {
                    teller.tell(event(&view), &view).await?;
                }
            }
            Ok(Row { view, .. }) => {
                if unreachable.take().is_some() {
                    teller.tell(REACHABLE, &view).await?;
                }
                if let Some(event) = change(&last, &view)
                    && (event != RENEWED || teller.args.renewals || last.status == LockStatus::Expired)
                {
                    teller.tell(event, &view).await?;
                }
                last = view;
            }
        }
    }
}

/// The event by which a lock got its status.
fn event(view: &View) -> &'static str {
    match (view.status, view.status.names()) {
        (LockStatus::Expired, (_, standing)) => standing,
        (_, ("held", _)) => "leading",
        (_, ("free", _)) if view.session.is_some() => "sessionEnded",
        (_, (state, _)) => state,
    }
}

fn change(before: &View, after: &View) -> Option<&'static str> {
    let term = |view: &View| (view.status.names().0, view.holder.clone(), view.fencing_token);
    let is_expired = |view: &View| view.status == LockStatus::Expired;
    if term(before) != term(after) || is_expired(after) && !is_expired(before) {
        return Some(event(after));
    }
    if after.preferred_holder.is_some() && before.preferred_holder != after.preferred_holder {
        return Some("handoverRequested");
    }
    let versions = |view: &View| (view.version.clone(), view.session.clone());
    (before.holder.is_some() && versions(before) != versions(after)).then_some(RENEWED)
}

/// Everybody who is told of changes.
struct Teller<'a> {
    args: &'a Args,
    poster: Option<Poster>,
    numbers: Numbers,
    output: &'a Output,
}

impl Teller<'_> {
    /// Prints a change, posts it, and runs the command for it.
    async fn tell(&mut self, event: &'static str, view: &View) -> Result<(), Failure> {
        let time = view::time(SystemClock.wall_time());
        let cloud_event = self.numbers.next(&view.lock, &time, event, ChangeLine { time: None, event, view });
        match self.args.output {
            Format::CloudEvents => self.output.json(&cloud_event)?,
            Format::Json => self.output.json(&ChangeLine { time: Some(&time), event, view })?,
            Format::Text => print(&time, event, view, self.output)?,
        }
        if let Some(poster) = &self.poster {
            poster.post(event, serde_json::to_string(&cloud_event).map_err(std::io::Error::from)?);
        }
        match self.args.command.split_first() {
            Some((program, arguments)) => hook::run(program, arguments, &time, event, view, self.output).await,
            None => Ok(()),
        }
    }
}

fn print(time: &str, event: &str, view: &View, output: &Output) -> Result<(), Failure> {
    let text = match event {
        RENEWED => format!("{} renewed the lease", view.holder.as_deref().unwrap_or("nobody")),
        REACHABLE => "the store answers again".to_owned(),
        _ => view.advised(view.with_term()),
    };
    let mut out = output.stdout();
    writeln!(out, "{time}  {}", escape(text))?;
    Ok(out.flush()?)
}
