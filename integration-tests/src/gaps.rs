//! The events of a fleet in one process, in real time, on a real S3 server behind a proxy that is as slow as Amazon's.

use std::sync::Arc;
use std::time::Duration;

use leaderelection_backends::s3::S3Store;
use leaderelection_proofs::gaps::{Event, Measured, Pace, Settings};

use crate::proxy::Proxy;
use crate::servers::seaweedfs::{BUCKET, SeaweedFs};
use crate::servers::unique_name;

/// Lets an event happen to a fleet in whose way the proxy stands, and measures.
pub async fn measure(event: Event, settings: Settings, server: &SeaweedFs) -> Measured {
    let proxy = Proxy::start(&server.url(), server.signer()).await;
    let Pace { request, page, throttle } = settings.pace;
    proxy.set_pace(page, request);
    let pace = Pace { request: Duration::ZERO, page: Duration::ZERO, throttle };
    let open = || Arc::new(S3Store::new(server.client_by(&proxy.url()), BUCKET)) as _;
    event.happen(Settings { pace, ..settings }, &open, &unique_name()).await
}
