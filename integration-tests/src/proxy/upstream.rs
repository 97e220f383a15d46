//! The way to the real server.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, StatusCode, Uri, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::sign::Signer;
use super::traffic::Request;

/// The maker of connections to a server, by TLS or without it.
pub type Connector = HttpsConnector<HttpConnector>;

/// A connector that trusts the system's certificates.
///
/// # Panics
///
/// If the system has no certificates.
#[must_use]
pub fn connector() -> Connector {
    let connector = HttpsConnectorBuilder::new().with_native_roots().expect("the system's certificates");
    connector.https_or_http().enable_http1().build()
}

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The number of attempts while the server asks to slow down.
const ATTEMPTS: usize = 8;

/// The server's answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Clone)]
pub(crate) struct Upstream {
    url: String,
    host: HeaderValue,
    signer: Signer,
    client: Client<Connector, Full<Bytes>>,
}

impl Upstream {
    pub(crate) fn new(url: &str, signer: Signer, connector: Connector) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        let address: Uri = url.parse().expect("the URL of a server");
        let host = address.authority().and_then(|host| host.as_str().parse().ok()).expect("a URL with a host");
        // Every request has a connection of its own: a loss on a reused connection would look like a fault.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Self { url, host, signer, client }
    }

    /// Sends a request.
    ///
    /// A throttled request is repeated, because the server's own limit is not a fault of the test.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, Failure> {
        let mut attempt = 1;
        loop {
            let answer = self.try_send(request).await?;
            if answer.status != StatusCode::TOO_MANY_REQUESTS || attempt == ATTEMPTS {
                return Ok(answer);
            }
            attempt += 1;
            tokio::time::sleep(answer.retry_after()).await;
        }
    }

    async fn try_send(&self, request: &Request) -> Result<Answer, Failure> {
        let mut request = request.clone();
        request.headers = end_to_end(&request.headers);
        request.headers.insert(header::HOST, self.host.clone());
        (self.signer)(&mut request);
        let mut builder = hyper::Request::builder();
        if let Some(headers) = builder.headers_mut() {
            *headers = request.headers;
        }
        let uri = format!("{}{}", self.url, request.target);
        let outgoing = builder.method(request.method).uri(uri).body(Full::new(request.body))?;
        let (head, body) = self.client.request(outgoing).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { status: head.status, headers: end_to_end(&head.headers), body })
    }
}

impl Answer {
    fn retry_after(&self) -> Duration {
        let seconds = self.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        Duration::from_secs(seconds.unwrap_or(1))
    }
}

/// Returns the headers that do not concern a single connection.
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
