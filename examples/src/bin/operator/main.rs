//! A controller in two replicas, of which one works: a Kubernetes operator without Kubernetes.
//!
//! ```console
//! $ cargo run -p leaderelection-examples --features operator --bin operator -- file:///var/tmp/operator/lock --listen 127.0.0.1:8080
//! $ cargo run -p leaderelection-examples --features operator --bin operator -- file:///var/tmp/operator/lock --listen 127.0.0.1:8081
//! ```
//!
//! The controller copies the object `lock.desired` to the fenced object `lock.actual`.
//! SIGTERM stops the controller, releases the lease, and ends the process, in this order.

mod controller;
mod http;
mod prometheus;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use leaderelection::{DefaultLeaderElector, LeaderCallbacks, ObjectLock, unique_identity};
use leaderelection_backends::url::Location;
use leaderelection_examples::timing::Timing;
use leaderelection_examples::{logs, shutdown};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use controller::Controller;

/// A controller that works while it leads.
#[derive(Debug, Parser)]
struct Args {
    /// The lock, such as file:///var/tmp/operator/lock or s3://bucket/operator/lock.
    lock: Location,
    /// The address that serves /healthz, /readyz and /metrics.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    #[command(flatten)]
    timing: Timing,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { lock: location, listen, timing } = Args::parse();
    logs::to_stderr();
    // The recorder is installed first, because the election looks its metrics up when it begins.
    let metrics = prometheus::install()?;

    let store = location.open().await?;
    let lock = ObjectLock::new(store.clone(), location.key(), unique_identity());
    let controller = Controller::new(store, location.key());
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |leadership| controller.clone().run(leadership))
        .on_stop_leading(|| tracing::info!("the controller has stopped"));
    let elector = DefaultLeaderElector::new(timing.configure(lock, callbacks)?.name("operator").build()?);

    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    println!("serving on http://{}", listener.local_addr()?);
    let health = elector.health_check(Duration::from_secs(5));
    let stop_serving = CancellationToken::new();
    let serving = tokio::spawn(http::serve(listener, elector.handle(), health, metrics, stop_serving.clone()));

    elector.campaign(shutdown::on_signal()?).await?;
    stop_serving.cancel();
    serving.await??;
    println!("stopped");
    Ok(())
}
