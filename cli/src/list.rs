//! `leaderelect list`.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use comfy_table::{Cell, CellAlignment, Table, presets};
use futures_util::stream::{self, StreamExt as _};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::{Bounded, ConditionalStore, ListedObject, ObjectStoreBasedLock as _};

use leaderelection_conformance::is_object_of_probe;

use crate::exit::{Exit, Failure};
use crate::lock::PrefixUrl;
use crate::output::{Format, Output};
use crate::plain::plain;
use crate::timing::{duration, request_limit};
use crate::view::{self, State, View};

/// Show all locks under a prefix, as `kubectl get leases` does
///
/// Objects of probes, in folders leaderelection-probe/, are not shown.
///
/// SINCE and RENEWED are by the clocks of the holders, and are only as accurate as those clocks. To find out
/// whether a holder is alive, use `leaderelect status --watch-for`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The common prefix of the locks, such as s3://bucket/locks/ or file:///directory/
    #[arg(value_name = "PREFIX-URL", value_parser = PrefixUrl::parser())]
    prefix: PrefixUrl,
    /// The longest time for one request
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    request_timeout: Duration,
    /// The output format: json is one object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

/// The number of objects that are read at the same time.
const AT_A_TIME: usize = 16;

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let store = Bounded::new(args.prefix.open().await?, request_limit(args.request_timeout));
    let store: Arc<dyn ConditionalStore> = Arc::new(store);
    let mut keys = ListedObject::keys(store.list(args.prefix.prefix()).await?);
    keys.retain(|key| !is_object_of_probe(key));
    let count = keys.len();
    let mut looks = stream::iter(&keys)
        .map(|key| {
            let (url, lock) = args.prefix.lock(&store, key);
            async move {
                match View::of(&url, lock.get().await) {
                    Ok(view) => view,
                    // An unreadable lock does not hide the other locks.
                    Err(failure) => View::unreachable(&url, &failure),
                }
            }
        })
        .buffered(AT_A_TIME);
    let mut views = Vec::with_capacity(count);
    while let Some(view) = looks.next().await {
        views.push(view);
        output.progress(format_args!("read {} of {count}", views.len()));
    }
    output.done();
    match args.output {
        Format::Json => views.iter().try_for_each(|view| output.json(view))?,
        Format::Text if views.is_empty() => output.say(format_args!("no locks under {}", args.prefix)),
        Format::Text => {
            let table = table(keys.iter().map(String::as_str).zip(&views), SystemClock.wall_time());
            writeln!(output.stdout(), "{table}")?;
        }
    }
    let mut unreachable = views.iter().filter(|view| view.state == State::Unreachable).peekable();
    let problem = unreachable.peek().and_then(|view| view.problem.clone()).unwrap_or_default();
    match unreachable.count() {
        0 => Ok(Exit::Done),
        failed if failed < count => {
            if args.output == Format::Text {
                output.say(problem);
            }
            Ok(Exit::Done)
        }
        _ => Err(Failure::new(Exit::Unavailable, problem)),
    }
}

fn table<'a>(rows: impl Iterator<Item = (&'a str, &'a View)>, now: DateTime<Utc>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["LOCK", "HOLDER", "TOKEN", "LEASE", "SINCE", "RENEWED"]);
    for (key, view) in rows {
        let times = view.by_holders_clock.filter(|_| view.holder.is_some());
        let age = |time: Option<DateTime<Utc>>| time.map_or_else(|| "-".to_owned(), |time| view::ago(time, now));
        let holder = match view.state {
            State::Held => view.holder.clone().unwrap_or_default(),
            State::Free => "-".to_owned(),
            State::Absent => "(gone)".to_owned(),
            State::Unreadable => "(not a record)".to_owned(),
            State::Unreachable => "(cannot be read)".to_owned(),
        };
        let lease = view.lease_duration.filter(|_| view.holder.is_some());
        table.add_row([
            Cell::new(plain(key)),
            Cell::new(plain(holder)),
            Cell::new(view.fencing_token.map_or_else(|| "-".to_owned(), |token| token.to_string()))
                .set_alignment(CellAlignment::Right),
            Cell::new(lease.map_or_else(|| "-".to_owned(), |lease| humantime::format_duration(lease).to_string())),
            Cell::new(age(times.and_then(|times| times.acquire_time))),
            Cell::new(age(times.and_then(|times| times.renew_time))),
        ]);
    }
    let columns: Vec<_> = table.column_iter_mut().collect();
    for column in columns {
        column.set_padding((0, 3));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
