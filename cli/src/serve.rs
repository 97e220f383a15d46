//! `leaderelect serve`: competes, and tells over HTTP who leads.

mod access;
mod limit;
mod metrics;
mod page;
mod server;
mod signals;
mod site;
mod snapshot;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use leaderelection::{DefaultLeaderElector, EndReason, LeaderCallbacks, LeaderHandle};
use tokio_util::sync::CancellationToken;

use self::access::AccessArgs;
use self::server::Server;
use self::signals::{Signals, Told};
use self::site::Site;
use self::tls::Tls;
use crate::exit::{Exit, Failure};
use crate::lock::LockUrl;
use crate::output::Output;
use crate::timing::{Timing, duration};

/// Compete for a lock, and tell over HTTP who leads: a sidecar for programs in any language
///
/// Serves
///
///   /         a page for people
///   /leader   JSON: {"name": "…"} and how fresh that is
///   /leading  200 while we lead, else 503
///   /readyz   200 if the store has answered within a lease, else 503
///   /healthz  200 unless a leader has stopped renewing, else 500
///   /metrics  for Prometheus
///
/// What is read here is true when it is read: a program that acts on it may act a little late. Let it
/// show the fencing token, which /leader tells, to whatever it writes to, and have smaller ones refused
/// there.
///
/// At SIGTERM or SIGINT, /readyz and /leading fail for as long as --drain says; then leadership ends, the
/// lease is released, and the exit code is 0. A second signal cuts the drain short. SIGHUP reads the TLS
/// certificate and key anew.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The lock, such as s3://bucket/key or file:///directory/name
    #[arg(long, value_name = "URL", value_parser = LockUrl::parser())]
    lock: LockUrl,
    /// Probe the store first, as `leaderelect probe` does, and elect nobody on one that fails
    #[arg(long)]
    require_probe: bool,
    /// How long a leader still leads after SIGTERM, while /readyz and /leading fail already, so that load
    /// balancers notice
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    drain: Duration,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    timing: Timing,
}

const EXAMPLES: &str = "\
Examples:
  Beside a program on the same machine:
    leaderelect serve --lock s3://bucket/locks/scheduler
    curl http://127.0.0.1:4040/leader
  For other machines:
    openssl rand -hex 32 > token
    leaderelect serve --lock s3://bucket/locks/scheduler --listen 0.0.0.0:4040 \\
        --tls-cert cert.pem --tls-key key.pem --token-file token
    curl --header \"Authorization: Bearer $(cat token)\" https://host.example:4040/leader";

/// How much older than the lease a leader's last renewal may be until we say that we are not well.
/// That of Kubernetes' components.
const TOLERATED_DELAY: Duration = Duration::from_secs(20);

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let signals = Signals::listen()?;
    let token = args.access.token()?;
    let server = Server::bind(&args.access)?;
    // Before the elector, which looks its metrics up when it begins.
    let metrics = metrics::install()?;

    let identity = args.timing.identity();
    let lock = args.lock.open(&identity).await?;
    let config = args.timing.configure(lock, callbacks(output)).require_probe(args.require_probe).build()?;
    let elector = DefaultLeaderElector::new(config);
    let draining = CancellationToken::new();
    let site = Arc::new(Site {
        lock: args.lock.to_string(),
        handle: elector.handle(),
        health: elector.health_check(TOLERATED_DELAY),
        ready_within: args.timing.lease,
        draining: draining.clone(),
        metrics,
        token,
    });
    output.say(format_args!("serving {}", server.url()));
    output.say(format_args!("competing for {} as {identity}", args.lock));

    let shutdown = CancellationToken::new();
    let stop = Stop { signals, tls: server.tls(), drain: args.drain, draining, handle: elector.handle(), output };
    let mut running = server.start(site::routes(site));
    let mut campaign = std::pin::pin!(elector.campaign(shutdown.clone()));
    let (reason, failure) = tokio::select! {
        biased;
        reason = &mut campaign => (reason, None),
        failure = running.failed() => {
            shutdown.cancel();
            (campaign.await, Some(failure))
        }
        () = stop.due() => {
            shutdown.cancel();
            running.stop_accepting();
            (campaign.await, None)
        }
    };
    running.finish().await;
    match (reason, failure) {
        (_, Some(failure)) => Err(failure),
        (reason @ EndReason::StoreUnfit { .. }, _) => Err(Failure::new(Exit::Unfit, reason.to_string())),
        _ => Ok(Exit::Done),
    }
}

fn callbacks(output: &Output) -> LeaderCallbacks {
    let (elected, stopped) = (output.clone(), output.clone());
    LeaderCallbacks::new()
        .on_new_leader(move |leader| elected.say(format_args!("{leader} leads")))
        .on_stop_leading(move || stopped.say("stopped leading"))
}

/// When to stop, and what comes before.
struct Stop<'a> {
    signals: Signals,
    tls: Option<Tls>,
    drain: Duration,
    draining: CancellationToken,
    handle: LeaderHandle,
    output: &'a Output,
}

impl Stop<'_> {
    /// Completes when leadership should end.
    async fn due(mut self) {
        self.told_to_end().await;
        self.draining.cancel();
        if self.drain.is_zero() || !self.handle.is_leader() {
            return self.output.say("stopping");
        }
        let drain = humantime::format_duration(self.drain);
        self.output.say(format_args!("leading on for {drain}, so that load balancers notice; once more to stop now"));
        let mut drained = std::pin::pin!(tokio::time::sleep(self.drain));
        let mut handle = self.handle.clone();
        loop {
            tokio::select! {
                biased;
                () = self.told_to_end() => break,
                () = &mut drained => break,
                // Nobody shall be made to wait for a leader that is none.
                Ok(()) = handle.changed() => if !handle.is_leader() { break },
            }
        }
        self.output.say("stopping");
    }

    async fn told_to_end(&mut self) {
        while self.signals.next().await == Told::Reload {
            match self.tls.as_ref().map(Tls::reload) {
                Some(Ok(())) => self.output.say("read the certificate and its key anew"),
                Some(Err(failure)) => self.output.say(format_args!("going on with the old certificate: {failure}")),
                None => {}
            }
        }
    }
}
