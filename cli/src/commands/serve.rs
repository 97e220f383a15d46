//! `leaderelect serve`: competes, and serves the current leader over HTTP.

mod events;
mod facts;
mod latency;
pub(crate) mod metrics;
mod page;
mod program;
mod role;
mod site;
mod snapshot;
#[cfg(unix)]
mod systemd;
mod terms;
mod wait;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{OptionFuture, join_all, select_all};
use leaderelection::handle::Change;
use leaderelection::lock::JobId;
use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderHandle};
use tokio_util::sync::CancellationToken;

use self::facts::Facts;
use self::latency::{Latencies, Timed};
use self::program::Program;
use crate::args::election::{ElectionArgs, RequireProbe};
use crate::args::parts::Parts;
use crate::args::peers::Connected;
use crate::args::timing::duration;
use crate::cause;
#[cfg(unix)]
use crate::commands::notify::NotifyArgs;
use crate::exit::{Exit, Failure};
use crate::lock::{CandidateLock, LockUrl};
use crate::output::Output;
use crate::pages::http::{AccessArgs, Addresses, Ending, Running, Server, addresses};

/// Compete for a lock and tell over HTTP who leads
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: CandidateLock,
    #[command(flatten)]
    parts: Parts,
    #[command(flatten)]
    probe: RequireProbe,
    /// Keep the lease this long after SIGTERM
    ///
    /// Meanwhile /readyz and /leading already fail. Allow for the longest item of work and one poll of /leading. The default is
    /// --lease-duration.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    drain: Option<Duration>,
    /// Serve probes and metrics here too
    ///
    /// Serves only /healthz, /readyz, /leading and /metrics, without TLS and without a token, for Kubernetes and Prometheus.
    /// They name the lock and contain no secret.
    #[arg(long, value_name = "HOST:PORT", value_parser = addresses)]
    probe_listen: Option<Addresses>,
    /// Lead until this job is done once
    ///
    /// For a job (for example a date) that one of many hosts must do once. The program says `done` in POST /term. Then no host
    /// leads for this ID again, and jobDone is true in /leader. The lock remembers the last 16 IDs.
    #[arg(long, value_name = "ID", conflicts_with = "failback")]
    job_id: Option<JobId>,
    /// Exit when the job of --job-id is done
    ///
    /// Exits with 0 once the program knows: it has said `done`, or has got an answer with jobDone true. For a sidecar that must
    /// not outlive its program, for example in a Kubernetes Job.
    #[arg(long, requires = "job_id", hide_short_help = true)]
    end_when_done: bool,
    /// End a term if no heartbeat comes in time
    ///
    /// A heartbeat is `running` in POST /term.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    heartbeat_timeout: Option<Duration>,
    /// Exit when standard input ends
    ///
    /// Also releases the lease. If a program starts this process with a pipe, this process exits when the program ends, even
    /// by a crash.
    #[arg(long)]
    exit_on_stdin_eof: bool,
    #[cfg(unix)]
    #[command(flatten)]
    notify: NotifyArgs,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    election: ElectionArgs,
}

const ABOUT: &str = "\
Compete for a lock and tell over HTTP who leads: a sidecar for any language

    leaderelect serve s3://bucket/locks/scheduler
    curl http://127.0.0.1:4040/leader

Serves

  /         a page for people
  /leader   JSON: {\"name\": \"…\"}; the name is \"\" if no leader is known
            ?wait=30s&after=TOKEN waits until the fencing token changes
  /events   the same, now and after each change: server-sent events
  /term     POST JSON: {\"token\": TOKEN, \"work\": \"running\"}, or \"done\",
            \"failed\" or \"stopped\", which release the lease; 409 if the
            term with this token is over
  /leading  200 while this process leads, else 503
  /readyz   200 if the store has answered within a lease duration, else 503
  /healthz  500 if this process leads and has stopped renewing, else 200
  /metrics  for Prometheus
  /openapi.json

Fencing: an answer is true when it is given, and a program that acts on it may act a little late. No answer means: not \
leading. Pass the fencing token of /leader to every resource that the program writes to, and let those resources reject \
smaller tokens.

Work: a program that has said `running` in a term counts as working until it says otherwise. After SIGTERM or failed renewals, the \
lease is kept while the work lasts, at most until it expires, and released as soon as the work has ended.

Shutdown: after SIGTERM or SIGINT, /readyz and /leading fail for the time of --drain. Then leadership ends, the lease is \
released, and the exit code is 0. A second signal ends the drain early. SIGHUP reloads the TLS certificate, its key and \
the token.";

const EXAMPLES: &str = "\
Examples:
  In a pod: the page and /leader for the pod, the rest for Kubernetes:
    leaderelect serve s3://bucket/locks/scheduler \\
        --probe-listen 0.0.0.0:4041
  For other machines:
    openssl rand -hex 32 > token
    leaderelect serve s3://bucket/locks/scheduler --listen 0.0.0.0:4040 \\
        --tls-cert cert.pem --tls-key key.pem --token-file token
    curl --header \"Authorization: Bearer $(cat token)\" \\
        https://host.example:4040/leader";

/// The tolerated age of a leader's last renewal beyond the lease before /healthz fails. Kubernetes' components
/// use the same value.
const TOLERATED_DELAY: Duration = Duration::from_secs(20);

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    args.election.must_fit(&args.parts, &args.lock)?;
    if args.exit_on_stdin_eof && args.access.listen.is_stdin() {
        return Err(Failure::usage(
            "--exit-on-stdin-eof cannot be used with --listen stdin: a socket never ends; remove one of the two options",
        ));
    }
    let hosts = args.access.hosts.with(args.election.peers.addresses());
    let (server, token, signals) = Server::bind(&args.access, &hosts)?;
    let probes = args.probe_listen.as_ref().map(|addresses| Server::bind_open(addresses, &hosts, "--probe-listen"));
    let probes = probes.transpose()?;
    // The recorder has to exist before the elector, which looks its metrics up when it begins to compete.
    let metrics = metrics::install()?;

    let identity = args.election.timing.identity();
    let latencies = Mutex::new(Vec::new());
    let timed = async |url: &LockUrl| {
        let own = Latencies::default();
        latencies.lock().unwrap_or_else(PoisonError::into_inner).push((url.to_string(), own.clone()));
        url.open_observed(&identity, Timed { key: url.location().key().to_owned(), latencies: own }).await
    };
    let lock = args.parts.join_by(&args.lock, timed).await?;
    let locks = args.parts.with(&args.lock).to_string();
    let timings = args.election.timing.timings()?;
    let program = Arc::new(Program::new(args.heartbeat_timeout, args.job_id.as_ref(), args.end_when_done));
    let handle = Arc::new(OnceLock::new());
    let config = args.election.config(lock, callbacks(output, &program, &handle), &args.probe)?;
    let name = config.name().to_owned();
    let elector = DefaultLeaderElector::new(config);
    let handle = handle.get_or_init(|| elector.handle()).clone();
    let peers = args.election.peers.connect(&elector)?;
    let (draining, shutdown) = (CancellationToken::new(), CancellationToken::new());
    let drain = args.drain.unwrap_or(args.election.timing.lease_duration);
    let facts = Arc::new(Facts {
        lock: locks.clone(),
        handle: handle.clone(),
        program: Arc::clone(&program),
        timings,
        latencies: latencies.into_inner().unwrap_or_else(PoisonError::into_inner),
        health: elector.health_check(TOLERATED_DELAY),
        drain,
        draining: draining.clone(),
        shutdown: shutdown.clone(),
        metrics,
        peers: peers.as_ref().map(Connected::attached),
    });
    output.say(format_args!("serving {}", server.url()));
    if let Some(probes) = &probes {
        output.say(format_args!("serving probes and metrics at {}", probes.url()));
    }
    output.say(format_args!("competing for {locks} as {identity}"));
    args.parts.trust(&args.lock).into_iter().for_each(|trust| output.say(trust));

    #[cfg(unix)]
    systemd::tell(&args.notify, (handle.clone(), elector.health_check(TOLERATED_DELAY)), &args.lock, &draining)?;

    let ending = Ending::new(signals, &server, token.clone(), name, output);
    let due = due(ending, drain, &draining, handle.clone(), output);
    let probes = probes.map(|probes| probes.start(site::probes(Arc::clone(&facts)))).transpose()?;
    let mut running = vec![server.start(site::routes(facts, token))?];
    running.extend(probes);
    let gone = program.gone.clone();
    if args.exit_on_stdin_eof {
        watch_stdin(gone.clone())?;
    }
    let campaign = program.lead(&elector, args.job_id.as_ref(), timings.lease_duration(), &shutdown, output);
    let mut campaign = std::pin::pin!(campaign);
    let (end, failure) = tokio::select! {
        biased;
        end = &mut campaign => (end, None),
        failure = first_failure(&running) => {
            shutdown.cancel();
            (campaign.await, Some(failure))
        }
        () = async { tokio::select! { () = due => {}, () = gone.cancelled() => {} } } => {
            shutdown.cancel();
            // A program at work still says that it has stopped.
            (campaign.await, None)
        }
    };
    // The lease is released by now, and followers wait to learn of it.
    let told = OptionFuture::from(peers.map(Connected::finish));
    tokio::join!(told, join_all(running.into_iter().map(Running::finish)));
    match (end, failure) {
        (_, Some(failure)) => Err(failure),
        (Err(unfit), None) => Err(Failure::new(Exit::Unfit, unfit.to_string())),
        (Ok(()), None) => Ok(Exit::Done),
    }
}

/// Completes if one of the servers ends unexpectedly. Cancellation safe.
async fn first_failure(running: &[Running]) -> Failure {
    select_all(running.iter().map(|running| running.failed().boxed())).await.0
}

/// Cancels `gone` when standard input ends.
fn watch_stdin(gone: CancellationToken) -> Result<(), Failure> {
    let watch = move || {
        // An input that cannot be read has no other end.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        gone.cancel();
    };
    let started = std::thread::Builder::new().name("stdin".to_owned()).spawn(watch);
    started.map(drop).map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))
}

/// The callbacks of the elector that `handle` will show.
fn callbacks(output: &Output, program: &Arc<Program>, handle: &Arc<OnceLock<LeaderHandle>>) -> LeaderCallbacks {
    let (elected, stopped, program) = (output.clone(), output.clone(), Arc::clone(program));
    let handle = Arc::clone(handle);
    LeaderCallbacks::new()
        .on_start_leading(move |leadership| Arc::clone(&program).work(leadership))
        .on_new_leader(move |leader| elected.say(format_args!("{leader} leads")))
        .on_stop_leading(move || {
            let transitions = handle.get().map(LeaderHandle::transitions).unwrap_or_default();
            let end =
                transitions.iter().rev().find(|transition| matches!(transition.change, Change::StoppedLeading { .. }));
            end.into_iter().for_each(|end| stopped.say(cause::of_change(end)));
        })
}

/// Completes when leadership should end, after the drain.
async fn due(
    mut ending: Ending,
    drain: Duration,
    draining: &CancellationToken,
    mut handle: LeaderHandle,
    output: &Output,
) {
    ending.told().await;
    draining.cancel();
    if drain.is_zero() || !handle.is_leader() {
        return output.say("stopping");
    }
    let time = humantime::format_duration(drain);
    output.say(format_args!(
        "keeping the lease for {time}, so that clients of /leading can finish; repeat the signal to stop now"
    ));
    let mut drained = std::pin::pin!(tokio::time::sleep(drain));
    loop {
        tokio::select! {
            biased;
            () = ending.told() => break,
            () = &mut drained => break,
            // A drain without leadership would only delay the next leader.
            Ok(()) = handle.changed() => if !handle.is_leader() { break },
        }
    }
    output.say("stopping");
}
