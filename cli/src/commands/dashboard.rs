//! `leaderelect dashboard`: one page for all locks under a prefix.

mod board;
mod jobs;
mod keeper;
mod line;
mod page;
mod past;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use tokio::sync::watch;

use self::board::Board;
use self::keeper::History;
use crate::args::timing::{duration, pause};
use crate::exit::{Exit, Failure};
use crate::lock::{Joined, PrefixUrl};
use crate::output::Output;
use crate::pages::http::{AccessArgs, Ending, Server, site};
use crate::survey::Scanner;

/// Serve a web page with all locks under a prefix
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Show the locks under this prefix
    ///
    /// A URL such as s3://bucket/locks/ or file:///directory/. If candidates combine several locks into one, name the prefix of
    /// each, in the order that all commands share. In the environment variable, put one URL per line.
    #[arg(value_name = "PREFIX-URL", value_parser = PrefixUrl::parser(), value_delimiter = '\n', required = true)]
    prefixes: Vec<PrefixUrl>,
    /// Poll the locks this often
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = pause)]
    refresh: Duration,
    /// Limit the time of a request
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    request_timeout: Duration,
    #[command(flatten)]
    access: AccessArgs,
}

const ABOUT: &str = "\
Serve a web page with all locks under a prefix: who leads, since when, and what is in trouble

    leaderelect dashboard s3://bucket/locks/

The page is at http://127.0.0.1:4040/. Locks in trouble come first. /jobs shows the work that ran under the locks: where, \
when, and with which result. The command does not compete. Each poll costs one listing (of each prefix), and one read of \
each object that has changed, however many browsers show the page. A lock that a session holds is shown with the lease of \
the session.

A lock is in trouble if its lease has expired: the dashboard saw no renewal for a whole lease duration, or the lease's \
age exceeds that duration, by the store's clock, or by the holder's if the store reports no ages. A lock is also in trouble if its object cannot be read or \
is not a record; if its object was deleted while the lock was held; or if the lock is free and the last work failed, according \
to its history.

The timeline of a lock shows the terms since the dashboard started, and those of the day before if candidates run with \
--keep-history. The page has at most 100 kB. Locks in trouble come first, so healthy ones are left out first; \
`leaderelect list` shows all.";

const EXAMPLES: &str = "\
Examples:
  For other machines:
    openssl rand -hex 32 > token
    leaderelect dashboard s3://bucket/locks/ --listen 0.0.0.0:4040 \\
        --tls-cert cert.pem --tls-key key.pem --token-file token";

/// The facts behind the page.
#[derive(Clone, Debug)]
struct Facts {
    prefix: String,
    refresh: Duration,
    board: watch::Receiver<Arc<Board>>,
}

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let (server, token, signals) = Server::bind(&args.access, &args.access.hosts.with([]))?;
    let survey = Scanner::open_parts(&args.prefixes, args.request_timeout).await?;
    let prefix = Joined(&args.prefixes[..]).to_string();
    let (sender, board) = watch::channel(Arc::new(Board::default()));
    let facts = Facts { prefix: prefix.clone(), refresh: args.refresh, board };
    output.say(format_args!("serving {}", server.url()));
    for missing in args.prefixes.iter().filter_map(PrefixUrl::missing_directory) {
        output.warn(format_args!("directory {} not found; the page shows no locks", missing.display()));
    }
    output.say(format_args!("polling {prefix} every {}", humantime::format_duration(args.refresh)));

    let mut ending = Ending::new(signals, &server, token.clone(), prefix, output);
    let guarded = Router::new().route("/", get(show)).route("/jobs", get(show_jobs)).with_state(facts);
    let open = Router::new().route("/healthz", get(|| async { "ok\n" }));
    let running = server.start(site(guarded, open, token))?;
    let result = tokio::select! {
        biased;
        () = ending.told() => Ok(Exit::Done),
        failure = running.failed() => Err(failure),
        never = History::new(survey).keep(args.refresh, &sender) => match never {},
    };
    running.finish().await;
    result
}

async fn show(State(facts): State<Facts>) -> Response {
    let board = Arc::clone(&facts.board.borrow());
    page::answer(page::html(&facts.prefix, &board, facts.refresh))
}

async fn show_jobs(State(facts): State<Facts>) -> Response {
    let board = Arc::clone(&facts.board.borrow());
    page::answer(jobs::html(&facts.prefix, &board, facts.refresh))
}
