//! `--metrics-listen`: the metrics of `run`, for Prometheus.

use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::time::sleep;

use crate::commands::serve::metrics;
use crate::exit::Failure;
use crate::output::Output;
use crate::pages::http::{Addresses, Hosts, Running, Server};

/// The pause between two tries to listen.
const PAUSE: Duration = Duration::from_secs(2);

/// Serves the metrics on a task of its own, until the process ends. No job is left undone for want of metrics: where another
/// process listens, such as the job's last run, this one waits for its end.
pub(super) fn serve(addresses: Addresses, hosts: Hosts, output: &Output) -> Result<(), Failure> {
    let metrics = metrics::install()?;
    let answer = async move || ([(CONTENT_TYPE, metrics::CONTENT)], metrics.render());
    let routes = Router::new().route("/metrics", get(answer));
    let told = output.clone();
    let start = move || -> Result<Running, Failure> {
        let server = Server::bind_open(&addresses, &hosts, "--metrics-listen")?;
        let url = server.url().to_owned();
        let running = server.start(routes.clone())?;
        told.say(format_args!("serving {url}metrics"));
        Ok(running)
    };
    let (mut started, mut last, output) = (start(), None, output.clone());
    tokio::spawn(async move {
        loop {
            let problem = match started {
                Ok(running) => running.failed().await,
                Err(problem) => problem,
            };
            let problem = problem.to_string();
            if last.as_ref() != Some(&problem) {
                output.say(format_args!("cannot serve metrics: {problem}; retrying"));
                last = Some(problem);
            }
            sleep(PAUSE).await;
            started = start();
        }
    });
    Ok(())
}
