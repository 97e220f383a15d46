//! An operator for Kubernetes in two replicas, of which one reconciles.
//!
//! The operator keeps a copy of every ConfigMap that has the label `operator.example/copy=true`. One setting says what the
//! replicas elect on: a Lease, a bucket, or both while the operator moves from one to the other.
//!
//! ```console
//! $ cargo run -p leaderelection-operator-example --features kubernetes -- lease://default/operator
//! $ cargo run -p leaderelection-operator-example --features kubernetes -- s3://bucket/locks/operator
//! $ cargo run -p leaderelection-operator-example --features kubernetes -- lease://default/operator,s3://bucket/locks/operator
//! ```
//!
//! The cluster is the one of `KUBECONFIG`, or the one of the pod. `kubernetes.yaml` beside this folder runs two replicas in a
//! cluster with the least permissions.
//!
//! With `--warm-standby`, a follower watches and fills its caches while it waits, so that it reconciles at once when it leads.
//! This prints the time from the win to the first reconciliation, cold and warm:
//!
//! ```console
//! $ LEADERELECTION_TEST_CONFIG_MAPS=1000 cargo test -p leaderelection-operator-example --test it -- --nocapture only_a_cold
//! ```
//!
//! A leader that the API server does not answer any more gives leadership up, also if it could renew a lock in a bucket.
//!
//! SIGTERM ends leadership, then lets running reconciliations end, then releases the lock, and ends the process.

mod announce;
mod http;
mod prometheus;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use futures_util::FutureExt as _;
use kube::{Client, Config};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Probes, Timings, shutdown_signal,
    unique_identity,
};
use leaderelection_operator_example::{Controller, ElectedOn};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// An operator that reconciles while it leads.
#[derive(Debug, Parser)]
struct Args {
    /// The lock of the election, such as lease://default/operator or s3://bucket/locks/operator. Of two locks, separated by a
    /// comma, the first is the older one, from which the operator moves to the second.
    #[arg(env = "OPERATOR_ELECTED_ON")]
    elected_on: ElectedOn,
    /// The address that serves /healthz, /readyz and /metrics.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Let a follower watch and fill its caches while it waits.
    #[arg(long, env = "OPERATOR_WARM_STANDBY")]
    warm_standby: bool,
    #[command(flatten)]
    announce: announce::Announce,
    #[command(flatten)]
    timings: Timings,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { elected_on, listen, warm_standby, announce, timings } = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    // The recorder is installed first, because the election looks its metrics up when it begins.
    let metrics = prometheus::install()?;

    // The error of `infer` may quote lines of the kubeconfig, and with them a token.
    let config = Config::infer().await.ok();
    let config = config.context("no cluster is known; run in a pod, or see what `kubectl config view` tells")?;
    let announcer = announce.announcer(config.clone(), &elected_on)?;
    let controller = Controller::new(Client::try_from(config)?, timings, warm_standby);
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    println!("serving on http://{}", listener.local_addr()?);

    let lock = elected_on.lock(unique_identity()).await?;
    let work = controller.clone();
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |leadership| work.clone().run(leadership))
        .on_stop_leading(|| println!("the controller has stopped"))
        .on_new_leader(|leader| println!("leader: {leader}"));
    let config = LeaderElectionConfig::builder(lock, callbacks).timings(timings).name("operator").build()?;
    let elector = DefaultLeaderElector::new(config);
    let (handle, health) = (elector.handle(), elector.health_check(Duration::from_secs(20)));
    let beside = async move |stop: CancellationToken| {
        let serving = http::serve(listener, Probes::new(handle.clone(), health), metrics, stop.clone());
        let announcing = announcer.announce(handle, stop.clone());
        tokio::try_join!(serving, controller.stand_by(stop).map(Ok), announcing.map(Ok)).map(drop)
    };
    elector.campaign_with(shutdown_signal(), beside).await?;
    println!("stopped");
    Ok(())
}
