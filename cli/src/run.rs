//! `leaderelect run`: a command that runs while we lead, and never when we do not.

mod command;
mod first_look;
mod helper;
mod refusal;
mod signals;
mod start;
mod watchdog;
mod work;

use std::ffi::OsString;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::{DefaultLeaderElector, EndReason, LeaderCallbacks, LeaderHandle};
use rustix::process::Signal;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use self::command::CommandLine;
use self::first_look::Patience;
use self::refusal::{Refusals, WatchedLock};
use self::signals::Signals;
use self::work::{Ended, Job};
use crate::exit::{Exit, Failure};
use crate::lock::LockUrl;
use crate::output::Output;
use crate::timing::{Timing, duration};

pub(crate) use self::helper::Helper;

/// Wait for leadership, run a command while it lasts, and give it back
///
/// The command finds LEADERELECTION_IDENTITY, LEADERELECTION_FENCING_TOKEN and LEADERELECTION_LOCK (the
/// URL without secrets) in its environment. It runs in a process group of its own, which ends with it:
/// processes that it leaves behind are ended before the lease is given back. Its standard input is empty
/// when ours is a terminal.
///
/// SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGWINCH are passed on to the command's process
/// group, and the lease is renewed until the command has ended. Before we lead, the first four end the
/// wait.
///
/// When leadership is lost, the process group gets SIGTERM at once, and SIGKILL when half of the time is
/// over that is left until another may lead: with the default timings 2.5 seconds later. A watchdog process
/// sees to it even if this process is killed or stopped.
///
/// What the command sent on its way before it was killed is not called back: give the fencing token to
/// whatever it writes to, and have smaller ones refused there.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The lock, such as s3://bucket/key or file:///directory/name
    #[arg(long, value_name = "URL", value_parser = LockUrl::parser())]
    lock: LockUrl,
    /// Run the command for one term, then end. This is the default
    #[arg(long, conflicts_with = "campaign")]
    once: bool,
    /// Go on after the term, and run the command again whenever we lead again. SIGTERM, SIGINT or SIGQUIT
    /// ends it. When the command ends by itself, the others go first for one lease
    #[arg(long)]
    campaign: bool,
    /// Give up if we do not lead after this long. Without a limit we wait and try for ever: on somebody else,
    /// and, once the lock was read, on a store that fails or that refuses our writes
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with_all = ["campaign", "no_wait"])]
    wait_timeout: Option<Duration>,
    /// Give up at once if somebody else holds the lock, or if the store refuses. The lease of a holder that
    /// crashed counts, until somebody has waited for its end
    #[arg(long, conflicts_with = "campaign")]
    no_wait: bool,
    /// Probe the store first, as `leaderelect probe` does, and elect nobody on one that fails
    #[arg(long)]
    require_probe: bool,
    #[command(flatten)]
    timing: Timing,
    /// What to run while we lead
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  A nightly job on every node's crontab, which runs once:
    leaderelect run --lock s3://bucket/locks/nightly --no-wait -- /usr/local/bin/nightly
  A service of which one instance works:
    leaderelect run --campaign --lock s3://bucket/locks/worker -- worker --config /etc/worker.toml";

/// Why we stopped waiting, if it was our own decision.
#[derive(Debug)]
enum GivenUp {
    Signal(Signal),
    TimedOut,
    Held(String),
    Refused(Failure),
}

impl Args {
    /// How long to go on without leading; `None` is for ever.
    fn patience(&self) -> Option<Duration> {
        // Who does not wait for others does not wait for a store that fails either.
        self.wait_timeout.or(self.no_wait.then_some(self.timing.lease))
    }
}

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let patience = args.patience().unwrap_or(Duration::MAX);
    let give_up = std::pin::pin!(tokio::time::sleep(patience));
    let began = SystemClock.now();
    let identity = args.timing.identity();
    let lock = args.lock.open(&identity).await?;
    let command = CommandLine::new(&args.command, &identity, &args.lock)?;
    let shutdown = CancellationToken::new();
    let job = Arc::new(Job::new(command, &args.timing, shutdown.clone(), output.clone()));
    let (watched, refusals) = WatchedLock::new(lock.clone());
    let callbacks = callbacks(&job, &identity, output);
    let config = args.timing.configure(watched, callbacks).require_probe(args.require_probe).build()?;

    let mut signals = Signals::listen()?;
    let looking = match args.no_wait {
        true => Patience::Once,
        false => Patience::For(args.timing.lease.min(patience), began),
    };
    let found = tokio::select! {
        biased;
        signal = signals.next_ending() => return Ok(Exit::by_signal(signal.as_raw())),
        found = first_look::holder(&lock, &args.timing, looking) => found?,
    };
    if let Some(holder) = &found
        && args.no_wait
    {
        return Err(held(&args.lock, holder));
    }
    if found.is_none() || found.as_ref() == Some(&identity) {
        output.say(format_args!("competing for {} as {identity}", args.lock));
    }

    let elector = DefaultLeaderElector::new(config);
    let handle = elector.handle();
    let election = async {
        if args.campaign {
            elector.campaign(shutdown.clone()).await
        } else {
            elector.run(shutdown.clone()).await.reason
        }
    };
    let watch = Watch { args: &args, identity: &identity, job: &job, handle, refusals, shutdown: &shutdown };
    let (reason, given_up) = watch.until_over(election, &mut signals, give_up).await;
    conclude(&args, &job, &reason, given_up)
}

fn callbacks(job: &Arc<Job>, identity: &str, output: &Output) -> LeaderCallbacks {
    let (job, identity, output) = (Arc::clone(job), identity.to_owned(), output.clone());
    LeaderCallbacks::new().on_start_leading(move |leadership| Arc::clone(&job).lead(leadership)).on_new_leader(
        move |leader| {
            if leader != identity {
                output.say(format_args!("waiting: {leader} leads"));
            }
        },
    )
}

/// What goes on beside the election.
struct Watch<'a> {
    args: &'a Args,
    identity: &'a str,
    job: &'a Job,
    handle: LeaderHandle,
    refusals: Refusals,
    shutdown: &'a CancellationToken,
}

impl Watch<'_> {
    /// Runs the election to its end, passes signals on, and gives up when it is time to.
    async fn until_over(
        mut self,
        election: impl Future<Output = EndReason>,
        signals: &mut Signals,
        mut give_up: Pin<&mut Sleep>,
    ) -> (EndReason, Option<GivenUp>) {
        let mut given_up = None;
        let mut election = std::pin::pin!(election);
        loop {
            tokio::select! {
                biased;
                reason = &mut election => return (reason, given_up),
                signal = signals.next() => {
                    if !self.job.on_signal(signal) && signals::ends_the_wait(signal) {
                        given_up.get_or_insert(GivenUp::Signal(signal));
                        self.shutdown.cancel();
                    }
                }
                () = &mut give_up, if given_up.is_none() && !self.job.has_begun() => {
                    // The election is not polled in between: what is true now is true of the cancellation.
                    if !self.handle.is_leader() {
                        given_up = Some(self.after_timeout());
                        self.shutdown.cancel();
                    }
                }
                refused = self.refusals.next(), if self.args.no_wait && given_up.is_none() => {
                    if !self.job.has_begun() && !self.handle.is_leader() {
                        given_up = Some(GivenUp::Refused(refused));
                        self.shutdown.cancel();
                    }
                }
                Ok(()) = self.handle.changed(), if self.args.no_wait && given_up.is_none() => {
                    let other = self.handle.leader().filter(|leader| leader != self.identity);
                    if let Some(other) = other.filter(|_| !self.job.has_begun() && !self.handle.is_leader()) {
                        given_up = Some(GivenUp::Held(other));
                        self.shutdown.cancel();
                    }
                }
            }
        }
    }

    /// Whether it was another holder that we waited for, or a store that does not do its part.
    fn after_timeout(&self) -> GivenUp {
        let is_held = self.handle.leader().is_some_and(|leader| leader != self.identity);
        let failed = || {
            let error = self.handle.last_error().filter(|_| !is_held)?;
            Some(Failure::new(Exit::Unavailable, error.message))
        };
        self.refusals.last().or_else(failed).map_or(GivenUp::TimedOut, GivenUp::Refused)
    }
}

/// What the end of the election means for whoever started us.
fn conclude(args: &Args, job: &Job, reason: &EndReason, given_up: Option<GivenUp>) -> Result<Exit, Failure> {
    match (job.take_end(), given_up) {
        // The command of an earlier term has no say.
        (_, Some(GivenUp::Signal(signal))) if args.campaign && !job.is_finishing() => {
            Ok(Exit::by_signal(signal.as_raw()))
        }
        (Some(Ended::NotStarted(failure)), _) => Err(failure),
        (Some(Ended::ByItself(exit)), _) => Ok(exit),
        (Some(Ended::Lost { how }), _) => {
            let message = format!("leadership of {} was lost: {reason}; the command {how}", args.lock);
            Err(Failure::new(Exit::Lost, message))
        }
        (None, _) if matches!(reason, EndReason::StoreUnfit { .. }) => {
            Err(Failure::new(Exit::Unfit, reason.to_string()))
        }
        (None, Some(GivenUp::Signal(signal))) => Ok(Exit::by_signal(signal.as_raw())),
        (None, Some(GivenUp::Held(holder))) => Err(held(&args.lock, &holder)),
        (None, Some(GivenUp::Refused(failure))) => Err(failure),
        (None, Some(GivenUp::TimedOut)) => {
            let patience = humantime::format_duration(args.patience().unwrap_or_default());
            let message = format!("did not get {} within {patience}; `leaderelect status` tells who leads", args.lock);
            Err(Failure::new(Exit::Held, message))
        }
        (None, None) => {
            let message = format!("leadership of {} was lost: {reason}; the command was dropped", args.lock);
            Err(Failure::new(Exit::Lost, message))
        }
    }
}

fn held(lock: &LockUrl, holder: &str) -> Failure {
    Failure::new(Exit::Held, format!("{lock} is held by {holder}; leave out --no-wait to wait for it"))
}
