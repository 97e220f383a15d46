//! `--metrics-listen`: the metrics of `run`, for Prometheus.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use crate::exit::Failure;
use crate::http::{Addresses, Server};
use crate::output::Output;
use crate::serve::metrics;

/// Serves the metrics on a task of its own, until the process ends.
pub(super) fn serve(addresses: &Addresses, output: &Output) -> Result<(), Failure> {
    let server = Server::bind_open(addresses, "--metrics-listen")?;
    let metrics = metrics::install()?;
    output.say(format_args!("serving {}metrics", server.url()));
    let answer = async move || ([(CONTENT_TYPE, metrics::CONTENT)], metrics.render());
    let mut running = server.start(Router::new().route("/metrics", get(answer)));
    let output = output.clone();
    // Nobody's work has to end because nobody can count it.
    tokio::spawn(async move { output.say(running.failed().await) });
    Ok(())
}
