//! `--metrics-listen`: the metrics of `run`, for Prometheus.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use crate::commands::serve::metrics;
use crate::exit::Failure;
use crate::output::Output;
use crate::pages::http::{Addresses, Hosts, Server};

/// Serves the metrics on a task of its own, until the process ends.
pub(super) fn serve(addresses: &Addresses, hosts: &Hosts, output: &Output) -> Result<(), Failure> {
    let server = Server::bind_open(addresses, hosts, "--metrics-listen")?;
    let metrics = metrics::install()?;
    output.say(format_args!("serving {}metrics", server.url()));
    let answer = async move || ([(CONTENT_TYPE, metrics::CONTENT)], metrics.render());
    let running = server.start(Router::new().route("/metrics", get(answer)))?;
    let output = output.clone();
    // A failed metrics server does not end the command.
    tokio::spawn(async move { output.say(running.failed().await) });
    Ok(())
}
