//! The answers to probes and to Prometheus.

use std::io;

use axum::Router;
use axum::http::{StatusCode, Uri};
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
    let probe = async move |uri: Uri| {
        let (code, text) = probes.answer(uri.path());
        (StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), text)
    };
    let router = Router::new().route("/metrics", get(async move || metrics.render())).fallback(get(probe));
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}
