//! A candidate that appends to a log while it leads: the tests start several of them, and kill and freeze them.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, Leadership, Timings};
use leaderelection_arena::fenced_log::{AppendError, Entry, FencedLog, ReadError};
use leaderelection_arena::shutdown;
use leaderelection_backends::url::Location;
use leaderelection_integration_tests::contender::Report;

/// The number of entries, and of reports, that a leader writes in a retry period.
const RESTS: u32 = 6;

/// Competes for a lock, until SIGTERM or the end of its standard input.
#[derive(Parser)]
struct Args {
    /// The lock's URL. The log is beside the lock.
    lock: Location,
    /// The candidate's identity.
    identity: String,
    /// The timings, as JSON.
    #[arg(value_parser = |text: &str| serde_json::from_str::<Timings>(text))]
    timings: Timings,
}

type Log = FencedLog<Arc<dyn leaderelection::ConditionalStore>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let lock = args.lock.lock(&args.identity).await?;
    let log = FencedLog::new(Arc::clone(lock.store()), format!("{}-log", args.lock.key()));
    let rest = args.timings.retry_period() / RESTS;
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |leadership| lead(leadership, log.clone(), args.identity.clone(), rest));
    let config =
        LeaderElectionConfig::builder(lock, callbacks).timings(args.timings).release_on_cancel(true).build()?;
    shutdown::exit_with_parent();
    DefaultLeaderElector::new(config).campaign(shutdown::on_signal()?).await?;
    Ok(())
}

async fn lead(leadership: Leadership, log: Log, identity: String, rest: Duration) {
    // Both run concurrently: a leader whose log does not answer is still a leader.
    tokio::join!(claim(&leadership, rest), write(&leadership, &log, &identity, rest));
    report(Report::Ended { token: leadership.fencing_token(), at: SystemClock.now() });
}

/// Reports leadership repeatedly while it lasts.
async fn claim(leadership: &Leadership, rest: Duration) {
    loop {
        // The clock is read before the check. A process that is frozen between the two then does not report
        // leadership for the moment at which it thaws.
        let at = SystemClock.now();
        if !leadership.is_valid() {
            return;
        }
        report(Report::Inside { token: leadership.fencing_token(), at, until: leadership.valid_until() });
        pause(leadership, rest).await;
    }
}

async fn write(leadership: &Leadership, log: &Log, identity: &str, rest: Duration) {
    let token = leadership.fencing_token();
    let mut number = 0;
    while leadership.is_valid() {
        match log.append(&Entry::new(token, identity, number.to_string())).await {
            Ok(()) => report(Report::Appended { token, number }),
            Err(AppendError::Fenced { .. }) => report(Report::Fenced { token }),
            // The entry may or may not be in the log, so the next entry gets another number.
            Err(AppendError::Write(_) | AppendError::Read(ReadError::Store(_))) => {}
            Err(error) => fail(&error),
        }
        number += 1;
        pause(leadership, rest).await;
    }
}

async fn pause(leadership: &Leadership, rest: Duration) {
    tokio::select! {
        biased;
        () = leadership.lost() => {}
        () = tokio::time::sleep(rest) => {}
    }
}

fn report(report: Report) {
    // One write for the whole line, so that a kill leaves no part of it.
    let line = format!("{report}\n");
    let mut stdout = std::io::stdout();
    if stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_err() {
        std::process::exit(1);
    }
}

fn fail(error: &dyn std::error::Error) -> ! {
    eprintln!("the log cannot be used: {error}");
    std::process::exit(2)
}
