//! The answers to probes and to Prometheus.

use std::io;

use axum::Router;
use axum::routing::get;
use leaderelection::Probes;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves until `stop`.
pub(crate) async fn serve(
    listener: TcpListener,
    probes: Probes,
    metrics: PrometheusHandle,
    stop: CancellationToken,
) -> io::Result<()> {
    let router = Router::new().route("/metrics", get(async move || metrics.render())).fallback_service(probes);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}
