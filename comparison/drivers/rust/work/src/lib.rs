//! The contract of a candidate of the comparison, for drivers in Rust: comparison/README.md describes it.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The arguments that every driver takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The lock's name, or its URL
    #[arg(long)]
    pub lock: String,
    /// The candidate's identity
    #[arg(long)]
    pub identity: String,
    /// The file of the log
    #[arg(long)]
    log: PathBuf,
    /// The lease duration
    #[arg(long = "lease-ms", value_parser = millis)]
    pub lease: Duration,
    /// The renew deadline
    #[arg(long = "renew-ms", value_parser = millis)]
    pub renew: Duration,
    /// The retry period
    #[arg(long = "retry-ms", value_parser = millis)]
    pub retry: Duration,
    /// The time between two entries
    #[arg(long = "work-ms", value_parser = millis)]
    pub work: Duration,
}

fn millis(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}

impl Options {
    /// The limit of one request, for clients that have none of their own or a long one: that of client-go.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        (self.renew / 2).max(Duration::from_secs(1))
    }

    /// Opens the log.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    pub fn open(&self) -> anyhow::Result<Log> {
        let file = File::options().append(true).create(true).open(&self.log);
        let file = file.with_context(|| format!("cannot open {}", self.log.display()))?;
        Ok(Log { file: Arc::new(file), identity: self.identity.clone() })
    }
}

/// The work of all candidates of an election.
#[derive(Clone, Debug)]
pub struct Log {
    file: Arc<File>,
    identity: String,
}

impl Log {
    /// Writes one entry at once. An entry that cannot be written ends the process.
    pub fn append(&self, token: Option<u64>, event: &str) {
        let now = clock_gettime(ClockId::Monotonic);
        let token = token.map_or_else(|| "-".to_owned(), |token| token.to_string());
        let line = format!("{}{:09} {} {token} {event}\n", now.tv_sec, now.tv_nsec, self.identity);
        if let Err(error) = self.file.as_ref().write_all(line.as_bytes()) {
            eprintln!("cannot write to the log: {error}");
            std::process::exit(1);
        }
    }

    /// Says that the candidate competes from now on.
    pub fn ready(&self) {
        self.append(None, "ready");
    }

    /// Does the work of a leader every `period`, until `leads` says no, or until `end` completes. The end may come in the middle
    /// of a pause.
    pub async fn work(
        &self,
        token: Option<u64>,
        period: Duration,
        leads: impl Fn() -> bool,
        end: impl Future<Output = ()>,
    ) {
        let work = async {
            let mut event = "start";
            while leads() {
                self.append(token, event);
                event = "work";
                tokio::time::sleep(period).await;
            }
        };
        tokio::select! {
            biased;
            () = end => {}
            () = work => {}
        }
        self.append(token, "stop");
    }
}

/// Returns a token that SIGTERM cancels. The process ends when its standard input ends.
///
/// # Errors
///
/// If the handler cannot be installed.
pub fn on_sigterm() -> anyhow::Result<CancellationToken> {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
    let asked = CancellationToken::new();
    let (token, mut terminate) = (asked.clone(), signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        terminate.recv().await;
        token.cancel();
    });
    Ok(asked)
}
