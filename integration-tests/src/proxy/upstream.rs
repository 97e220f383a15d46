//! The way to the real server.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{HeaderMap, StatusCode, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::traffic::Request;

/// Signs a request anew, after the proxy has changed it.
pub type Signer = Arc<dyn Fn(&mut Request) + Send + Sync>;

pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the server answered.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

#[derive(Clone)]
pub(super) struct Upstream {
    url: String,
    client: Client<HttpConnector, Full<Bytes>>,
    grpc: Client<HttpConnector, Incoming>,
}

impl Upstream {
    pub(super) fn new(url: &str) -> Self {
        // A connection of its own for every request: what a reused one loses would look like a fault.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        let grpc = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        Self { url: url.trim_end_matches('/').to_owned(), client, grpc }
    }

    /// Carries a request of gRPC, body and trailers as they come.
    pub(super) async fn pass(
        &self,
        mut request: hyper::Request<Incoming>,
    ) -> Result<hyper::Response<Incoming>, Failure> {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        *request.uri_mut() = format!("{}{target}", self.url).parse()?;
        Ok(self.grpc.request(request).await?)
    }

    /// Sends a request, with the `Host` that the client wrote and signed.
    pub(super) async fn send(&self, request: &Request) -> Result<Answer, Failure> {
        let mut builder = hyper::Request::builder();
        if let Some(headers) = builder.headers_mut() {
            *headers = end_to_end(&request.headers);
        }
        let uri = format!("{}{}", self.url, request.target);
        let outgoing = builder.method(&request.method).uri(uri).body(Full::new(request.body.clone()))?;
        let (head, body) = self.client.request(outgoing).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { status: head.status, headers: end_to_end(&head.headers), body })
    }
}

/// The headers that are not about one connection.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::EXPECT] {
        headers.remove(name);
    }
    headers
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Upstream").field(&self.url).finish()
    }
}
