//! Competes for a lock with its like, and appends to a log while it leads: the tests kill and freeze it.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, Leadership};
use leaderelection_backends::url::Location;
use leaderelection_examples::fenced_log::{AppendError, Entry, FencedLog, ReadError};
use leaderelection_examples::shutdown;
use leaderelection_integration_tests::contender::Report;

/// How often in a retry period a leader writes an entry, and a report.
const RESTS: u32 = 6;

/// Competes for a lock, until SIGTERM or the end of its standard input.
#[derive(Parser)]
struct Args {
    /// The lock's URL. The log is next to it.
    lock: Location,
    /// The candidate's name.
    identity: String,
    /// The lease duration, in milliseconds.
    lease: u64,
    /// The renew deadline, in milliseconds.
    deadline: u64,
    /// The retry period, in milliseconds.
    retry: u64,
}

type Log = FencedLog<Arc<dyn leaderelection::ConditionalStore>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let lock = args.lock.lock(&args.identity).await?;
    let log = FencedLog::new(Arc::clone(lock.store()), format!("{}-log", args.lock.key()));
    let rest = Duration::from_millis(args.retry) / RESTS;
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |leadership| lead(leadership, log.clone(), args.identity.clone(), rest));
    let config = LeaderElectionConfig::builder(lock, callbacks)
        .lease_duration(Duration::from_millis(args.lease))
        .renew_deadline(Duration::from_millis(args.deadline))
        .retry_period(Duration::from_millis(args.retry))
        .release_on_cancel(true)
        .build()?;
    shutdown::exit_with_parent();
    DefaultLeaderElector::new(config).campaign(shutdown::on_signal()?).await;
    Ok(())
}

async fn lead(leadership: Leadership, log: Log, identity: String, rest: Duration) {
    // Side by side: a leader whose log does not answer is a leader all the same.
    tokio::join!(claim(&leadership, rest), write(&leadership, &log, &identity, rest));
    report(Report::Ended { token: leadership.fencing_token(), at: SystemClock.now() });
}

/// Says again and again that it leads, as long as it does.
async fn claim(leadership: &Leadership, rest: Duration) {
    loop {
        // The clock first: whoever is frozen in between does not claim the moment at which it thaws.
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
            // Whether it is in the log or not, the next entry has another number.
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
    // In one piece, so that a kill leaves no half of it.
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
