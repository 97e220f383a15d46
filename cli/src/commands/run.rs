//! `leaderelect run`: runs a command while this process leads, and never while it does not.

mod election;
mod exit_code;
mod first_read;
mod hooks;
mod locks;
mod loss;
mod metrics;
mod slots;
mod state;
mod term;
mod watch;
mod work;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::DefaultLeaderElector;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::lock::JobId;
use tokio_util::sync::CancellationToken;

use self::election::{Election, ElectionEnd};
use self::first_read::Patience;
use self::hooks::{HookArgs, Hooks};
use self::slots::Numbered;
use self::state::CommandState;
use self::watch::Watch;
use self::work::Job;
use crate::args::election::{ElectionArgs, RequireProbe};
use crate::args::parts::Parts;
use crate::args::timing::duration;
use crate::commands::notify::{NotifyArgs, VARIABLES};
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::lock::CandidateLock;
use crate::output::Output;
use crate::pages::http::{Addresses, HostArgs, addresses};
use crate::supervise::command::CommandLine;
use crate::supervise::input::Input;
use crate::supervise::signals::Signals;

/// Run a command while this process leads
///
///     leaderelect run --lock s3://bucket/locks/backup -- ./backup.sh
///
/// Waits for leadership, runs the command, and releases the lease once the command
/// and every process it left behind have ended. Without a command, prints the
/// fencing token on standard output and holds the lock until a signal.
///
/// Environment: the command gets LEADERELECTION_IDENTITY,
/// LEADERELECTION_FENCING_TOKEN and LEADERELECTION_LOCK (the URL without secrets).
/// It keeps all other variables, including credentials, except those of options
/// (LEADERELECT_*) and LEADERELECTION_HTTP_TOKEN. These are removed because they
/// may be secret, and because LEADERELECT_* would configure a leaderelect that the
/// command starts.
///
/// Fencing: losing leadership cannot undo a request that is already sent. Pass the
/// fencing token to every resource that the command writes to, and let those
/// resources reject smaller tokens.
///
/// Loss: if leadership is lost, all processes of the command get SIGTERM at once,
/// and SIGKILL after half of the time left until another candidate may lead: 2.5
/// seconds with the default timings. Two helper processes, leader-watchdog and
/// leader-guard, kill the command in time even if leaderelect is killed or stopped.
/// If one of the three is killed, the other two kill the command at once.
///
/// Signals: SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGWINCH are
/// forwarded to the command's process group, and the lease is renewed until the
/// command has ended. While no command runs, SIGTERM, SIGINT, SIGHUP and SIGQUIT
/// end the wait. On Linux, a signal that was ignored when leaderelect started
/// (nohup) stays ignored.
///
/// Leftover processes get SIGTERM once the command has ended, and SIGKILL 5 seconds
/// later: on Linux all descendants of the command, in any process group or session,
/// elsewhere its process group. If leaderelect cannot kill a process, such as
/// another user's, it names the process, and keeps the lease while that runs. A
/// second SIGTERM, SIGINT, SIGHUP or SIGQUIT then makes leaderelect exit with code
/// 80 without releasing the lease.
///
/// Terminal: the command runs in its own process group. If standard input is a
/// terminal, the command's standard input is empty. A command that opens the
/// terminal itself, for a password for example, gets the foreground if leaderelect
/// has it.
///
/// Slots: with --slots N, up to N processes run the command at a time, each holding
/// one of the slots 0 to N - 1. LEADERELECTION_SLOT is its number, and
/// LEADERELECTION_LOCK its lock, which has its own fencing tokens. Each process
/// leads through a session (one lease for many locks): see `leaderelect list
/// --sessions PREFIX-URL`. Processes with different numbers of slots compete for
/// the slots they have in common.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, override_usage = USAGE, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: CandidateLock,
    #[command(flatten)]
    parts: Parts,
    /// Exit after one term (the default)
    #[arg(long, conflicts_with = "campaign", hide_short_help = true)]
    once: bool,
    /// Compete again after each term
    ///
    /// Runs the command in every term until SIGTERM, SIGINT or SIGQUIT. If the command ends by itself, this candidate lets the
    /// others go first for one lease duration.
    #[arg(long)]
    campaign: bool,
    /// Give up after this time without leadership
    ///
    /// The reason may be that another candidate holds the lock, or that the store fails. Unlimited by default, except that
    /// leaderelect gives up after one lease duration if it has never read the lock: the URL may be wrong. 0s means --no-wait.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with_all = ["campaign", "no_wait"])]
    wait_timeout: Option<Duration>,
    /// Give up at once if the lock is held
    ///
    /// Also gives up if others hold all --slots, or if the store denies access. The lease of a crashed holder counts as held until a
    /// candidate has seen it expire: use --wait-timeout to take it over.
    #[arg(long, conflicts_with = "campaign")]
    no_wait: bool,
    /// Run this job once, on one of many hosts
    ///
    /// Runs the command until it has succeeded once for this job ID (for example a date), across all hosts. One host runs it;
    /// the others wait for it and then exit with 0. If the command fails or its host dies, the next host runs it. The
    /// lock remembers the last 16 IDs.
    #[arg(long, value_name = "ID", conflicts_with_all = ["campaign", "slots", "failback"], requires = "command")]
    job_id: Option<JobId>,
    /// Exit with this code instead of 75
    ///
    /// 75 means that another candidate holds the lock, or that the wait timed out.
    #[arg(long, value_name = "CODE", conflicts_with = "campaign", hide_short_help = true)]
    skip_exit_code: Option<u8>,
    /// Let this many processes lead at a time
    ///
    /// Each runs the command with its number in LEADERELECTION_SLOT. The lock is then the prefix of the slots:
    /// PREFIX/locks/slot/NUMBER, and PREFIX/sessions/.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    #[arg(conflicts_with_all = ["second_lock", "quorum", "trust_store_clock", "rank", "failback", "follower_interval"])]
    #[arg(requires = "command")]
    slots: Option<u32>,
    /// Follow SIGTERM with SIGKILL
    ///
    /// Kills the command, and everything it started, if it still runs this long after a SIGTERM, SIGINT or SIGQUIT
    /// was forwarded. The lease is kept meanwhile. If leadership is lost, the time is at most this long, and never longer than
    /// the lease allows.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    kill_after: Duration,
    /// Stop a command that runs longer than this
    ///
    /// The command gets SIGTERM, and SIGKILL after --kill-after. The lease is released, and the exit code is 124. With
    /// --campaign, the next term follows.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "command")]
    max_runtime: Option<Duration>,
    #[command(flatten)]
    hooks: HookArgs,
    /// Serve Prometheus metrics here
    ///
    /// At http://HOST:PORT/metrics, while this process waits and while it leads. Anyone who can reach the address can read
    /// them. They name the lock and contain no secret.
    #[arg(long, value_name = "HOST:PORT", value_parser = addresses)]
    metrics_listen: Option<Addresses>,
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    notify: NotifyArgs,
    #[command(flatten)]
    probe: RequireProbe,
    #[command(flatten)]
    election: ElectionArgs,
    /// Run this command while leading
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&str>)]
    command: Vec<OsString>,
}

/// The other ways to name the lock would make the line too long.
const USAGE: &str = "leaderelect run [OPTIONS] <URL> [-- <COMMAND>...]";

const EXAMPLES: &str = "\
Examples:
  A job in every node's crontab that runs once per night (cron needs \\%):
    LEADERELECT_LOCK=s3://bucket/locks/nightly?region=eu-central-1
    0 3 * * *  leaderelect run --job-id \"$(date -u +\\%F)\" -- nightly
  A job that never runs twice at a time:
    leaderelect run --wait-timeout 1m s3://bucket/locks/cleanup \\
        -- /usr/local/bin/cleanup
  A service with one active instance:
    leaderelect run --campaign s3://bucket/locks/worker -- worker
  Three workers at a time, numbered from 0 to 2:
    leaderelect run --campaign --slots 3 s3://bucket/workers -- worker
  A lock that a person holds during a repair, until Ctrl-C:
    leaderelect run s3://bucket/locks/worker
  The second of three rollouts from a Kubernetes Lease to a bucket:
    leaderelect run --campaign s3://bucket/locks/worker \\
        --second-lock lease://default/worker -- worker";

impl Args {
    /// The longest time without leadership; `None` means no limit.
    fn patience(&self) -> Option<Duration> {
        // With `--no-wait`, a store that fails gets one lease duration.
        self.wait_timeout.or(self.no_wait.then_some(self.election.timing.lease_duration))
    }

    fn exit_options(&self) -> exit_code::Options<'_> {
        exit_code::Options {
            lock: &self.lock,
            job_id: self.job_id.as_ref(),
            is_campaign: self.campaign,
            max_runtime: self.max_runtime,
            patience: self.patience(),
        }
    }
}

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let skip = args.skip_exit_code;
    match (lead(args, output).await, skip) {
        (Err(failure), Some(code)) if failure.exit == Exit::Held => {
            output.say(format_args!("skipped: {failure}"));
            Ok(Exit::Code(code))
        }
        (end, _) => end,
    }
}

async fn lead(mut args: Args, output: &Output) -> Result<Exit, Failure> {
    if args.wait_timeout.take_if(|timeout| timeout.is_zero()).is_some() {
        args.no_wait = true;
    }
    // Before a source of credentials starts a program.
    let input = Input::set_aside()?;
    let patience = args.patience().unwrap_or(Duration::MAX);
    let give_up = std::pin::pin!(tokio::time::sleep(patience));
    let began = SystemClock.now();
    let timings = args.election.timing.timings()?;
    args.election.must_fit(&args.parts, &args.lock)?;
    let identity = args.election.timing.identity();
    if let Some(addresses) = &args.metrics_listen {
        // Electors look their metrics up when they begin to compete.
        metrics::serve(addresses.clone(), args.hosts.with(args.election.peers.addresses()), output)?;
    }
    let lock = args.lock.open(&identity).await?;
    let locks = match args.slots {
        None => vec![args.lock.parts()[0].to_string()],
        Some(_) if args.lock.parts().len() > 1 => {
            return Err(Failure::usage("--slots needs exactly one --lock"));
        }
        Some(count) => slots::urls(&args.lock, &lock, count),
    };
    let mut hidden: Vec<String> = environment::hidden().collect();
    if args.notify.is_given() {
        hidden.extend(VARIABLES.map(str::to_owned));
    }
    let hooks = Hooks::new(args.hooks.clone(), hidden.clone(), timings.renew_deadline(), output.clone());
    let command = match &args.command[..] {
        [] => None,
        words => Some(CommandLine::new(words, hidden, output.format, input)?),
    };
    let elected = args.parts.join(&args.lock, lock.clone(), &identity).await?;
    // The signs of life come from the thread that renews the lease.
    let notifier = args.notify.start(|| true)?;
    let job = Arc::new(Job {
        command,
        identity: identity.clone(),
        locks,
        again: args.campaign,
        state: CommandState::new(&timings, args.kill_after, args.max_runtime),
        shutdown: CancellationToken::new(),
        output: output.clone(),
        notifier: notifier.clone(),
        hooks,
    });
    let mut peers = None;
    let election = match args.slots {
        None => {
            let config = args.election.config(elected.clone(), job.callbacks(), &args.probe)?;
            let elector = DefaultLeaderElector::new(config);
            peers = args.election.peers.connect(&elector)?;
            Election::Plain(Box::new(elector))
        }
        Some(count) => {
            args.election.peers.must_be_absent("--slots")?;
            Election::Slots(Box::new(Numbered::new(&lock, count, timings, (&args.election, &args.probe))?))
        }
    };

    let mut signals = Signals::listen()?;
    let patience = match args.no_wait {
        true => Patience::Once,
        false => Patience::For(args.wait_timeout.unwrap_or(args.election.timing.lease_duration), began),
    };
    let first_read = async {
        match args.slots {
            None => {
                let record = first_read::record(&elected, &timings, patience).await?;
                let done = record.as_ref().zip(args.job_id.as_ref()).is_some_and(|(record, job)| record.is_done(job));
                if done {
                    return Ok(first_read::FirstRead::Done);
                }
                Ok(first_read::FirstRead::Held(record.and_then(first_read::holder).map(|held| vec![held])))
            }
            Some(count) => {
                let read = async |limit: &_| slots::holders(&lock, count, limit).await;
                first_read::until_read(&args.lock.to_string(), &timings, patience, read)
                    .await
                    .map(first_read::FirstRead::Held)
            }
        }
    };
    let found = tokio::select! {
        biased;
        signal = signals.next_ending() => return Ok(Exit::by_signal(signal.as_raw())),
        found = first_read => match found? {
            first_read::FirstRead::Done => return Ok(already_done(&args, None, output)),
            first_read::FirstRead::Held(held) => held,
        },
    };
    if let Some(held) = &found
        && args.no_wait
    {
        return Err(first_read::held(held, &args.lock));
    }
    notifier.follows(&args.lock.to_string());
    args.parts.trust(&args.lock).into_iter().for_each(|trust| output.say(trust));
    output.say(format_args!("competing for {} as {identity}", args.parts.with(&args.lock)));

    job.state.observe(election.handles());
    let (locks, refusals) = (election.handles(), election.handles());
    let watch = Watch { no_wait: args.no_wait, slots: args.slots, job: &job, locks, refusals };
    let election = election.run(args.job_id.as_ref(), &job);
    let (end, given_up) = watch.until_over(election, &mut signals, give_up).await?;
    // Followers wait for the report that the lease is released.
    if let Some(peers) = peers {
        peers.finish().await;
    }
    // A further signal ends the wait.
    tokio::select! {
        () = job.hooks.ended() => {}
        _ = signals.next_ending() => {}
    }
    match end {
        ElectionEnd::Terms(end) => exit_code::after(args.exit_options(), &job, end, given_up),
        ElectionEnd::AlreadyDone { leader } => Ok(already_done(&args, leader, output)),
        ElectionEnd::Unmarked => {
            let name = args.job_id.as_ref().map_or("", JobId::as_str);
            let message = format!(
                "the command succeeded, but {} could not record it: the last write failed, or leadership was lost; another \
                 host may run {name:?} again",
                args.lock
            );
            Err(Failure::new(Exit::Lost, message))
        }
    }
}

/// Tells that the job is done. The lock does not say which host did the job; the last leader that was seen is a hint.
fn already_done(args: &Args, leader: Option<String>, output: &Output) -> Exit {
    let name = args.job_id.as_ref().map_or("", JobId::as_str);
    let last = leader.map_or_else(String::new, |leader| format!("; {leader} led last"));
    output.say(format_args!("{name} is already done; the command was not run{last}"));
    Exit::Done
}
