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
//! A leader that the API server does not answer any more gives leadership up, also if it could renew a lock in a bucket.
//!
//! SIGTERM ends leadership, then lets running reconciliations end, then releases the lock, and ends the process.

mod http;
mod prometheus;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use kube::Client;
use leaderelection::{DefaultLeaderElector, LeaderCallbacks, shutdown_signal, unique_identity};
use leaderelection_examples::logs;
use leaderelection_examples::timing::Timing;
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
    #[command(flatten)]
    timing: Timing,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { elected_on, listen, timing } = Args::parse();
    logs::to_stderr();
    // The recorder is installed first, because the election looks its metrics up when it begins.
    let metrics = prometheus::install()?;

    let client = Client::try_default().await.context("no cluster is known; set KUBECONFIG, or run in a pod")?;
    let controller = Controller::new(client, timing.timings()?);
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |leadership| controller.clone().run(leadership))
        .on_stop_leading(|| println!("the controller has stopped"))
        .on_new_leader(|leader| println!("leader: {leader}"));
    let lock = elected_on.lock(unique_identity()).await?;
    let elector = DefaultLeaderElector::new(timing.configure(lock, callbacks)?.name("operator").build()?);

    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    println!("serving on http://{}", listener.local_addr()?);
    let health = elector.health_check(Duration::from_secs(5));
    let stop_serving = CancellationToken::new();
    let serving = tokio::spawn(http::serve(listener, elector.handle(), health, metrics, stop_serving.clone()));

    elector.campaign(shutdown_signal()).await?;
    stop_serving.cancel();
    serving.await??;
    println!("stopped");
    Ok(())
}
