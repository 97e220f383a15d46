//! The edges of a request and its answer that the SDK leaves to its users.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::headers::{HeaderName, USER_AGENT};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{AsyncRawResponse, Context, HttpClientOptions, Request, Transport, new_http_client};

use crate::request::{self, beginning};

/// A transport that names this library in requests, and that limits the bodies of answers. The client reads a body to its
/// end before any policy sees the answer.
#[derive(Debug)]
pub(super) struct Edges(Transport);

impl Edges {
    /// Takes over a transport, or creates the SDK's usual one for blobs.
    pub(super) fn around(transport: Option<Transport>) -> Transport {
        let usual = || Transport::new(new_http_client(Some(HttpClientOptions { automatic_decompression: false })));
        Transport::with_policy(Arc::new(Self(transport.unwrap_or_else(usual))))
    }
}

#[async_trait]
impl Policy for Edges {
    async fn send(&self, context: &Context, request: &mut Request, _next: &[Arc<dyn Policy>]) -> PolicyResult {
        let others = request.headers().get_optional_str(&USER_AGENT).unwrap_or_default();
        let all = format!("{others} {}", request::USER_AGENT);
        request.insert_header(USER_AGENT, all.trim_start().to_owned());
        let (status, mut headers, body) = self.0.send(context, request).await?.deconstruct();
        // The client would ask for whatever the server says is left, although every read here is of one range, and its sum
        // overflows at the largest number.
        headers.remove(HeaderName::from_static("content-range"));
        let body = beginning::of(body, beginning::limit(status.is_success()));
        Ok(AsyncRawResponse::new(status, headers, Box::pin(body)))
    }
}
