//! The answers to probes and to Prometheus.

use std::io;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use leaderelection::{HealthCheck, LeaderHandle};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves until `stop`.
pub(crate) async fn serve(
    listener: TcpListener,
    handle: LeaderHandle,
    health: HealthCheck,
    metrics: PrometheusHandle,
    stop: CancellationToken,
) -> io::Result<()> {
    let router = Router::new()
        // Liveness: a leader that has stopped renewing should be restarted.
        .route(
            "/healthz",
            get(async move || match health.check() {
                Ok(()) => (StatusCode::OK, "ok".to_owned()),
                Err(unhealthy) => (StatusCode::INTERNAL_SERVER_ERROR, unhealthy.to_string()),
            }),
        )
        // Readiness: a replica that does not lead is ready too, because it can take over.
        .route(
            "/readyz",
            get(async move || match handle.observed() {
                Some(_) => (StatusCode::OK, "ok"),
                None => (StatusCode::SERVICE_UNAVAILABLE, "the lock was not read yet"),
            }),
        )
        .route("/metrics", get(async move || metrics.render()));
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}
