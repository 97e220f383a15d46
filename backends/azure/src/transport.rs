//! The edges of a request and its answer that the SDK leaves to its users.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::{Error, ErrorKind};
use azure_core::http::headers::{HeaderName, USER_AGENT};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{AsyncRawResponse, ClientMethodOptions, Context, Request, Transport};
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::ca::Authorities;
use leaderelection_store_support::request::fresh::Fresh;
use leaderelection_store_support::request::{self, Words, beginning, failed};
use leaderelection_store_support::tls::check_provider;
use reqwest::{Client, redirect};

/// The most connections that are kept for later requests.
const MOST_IDLE: usize = 16;

/// A transport that names this library in requests, and that limits the bodies of answers. The client reads a body to its
/// end before any policy sees the answer. The call itself brings the transport of its requests.
#[derive(Debug)]
pub(crate) struct Edges;

impl Edges {
    pub(crate) fn transport() -> Transport {
        Transport::with_policy(Arc::new(Self))
    }

    /// The options of a call whose requests go by `transport`.
    pub(crate) fn by(transport: Transport) -> ClientMethodOptions<'static> {
        ClientMethodOptions { context: Context::new().with_value(transport) }
    }
}

/// Takes over a transport, whose connections are its own, or creates usual ones for the container of this name.
pub(crate) fn renewed(
    transport: Option<Transport>,
    name: &str,
    authorities: Option<Authorities>,
) -> Result<Fresh<Transport>, StoreError> {
    let Some(transport) = transport else {
        let name = name.to_owned();
        return Ok(Fresh::new(usual(&name, authorities.as_ref())?, move || usual(&name, authorities.as_ref())));
    };
    Ok(Fresh::fixed(transport))
}

/// Creates a transport as the SDK does, whose own function panics on a machine without certificates of authorities. Plain HTTP
/// needs none of them, unless a proxy is asked with TLS. An answer is not decompressed, as for every client of blobs.
/// `authorities` are trusted, too.
pub(crate) fn usual(url: &str, authorities: Option<&Authorities>) -> Result<Transport, StoreError> {
    check_provider(cfg!(feature = "aws-lc-rs"), "leaderelection-azure")?;
    let begin = || {
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_secs(20))
            .read_timeout(Duration::from_secs(60))
            // A request that is given up ends its connection, which would outlive it in HTTP/2.
            .http1_only()
            .pool_max_idle_per_host(MOST_IDLE)
            .no_gzip()
            .no_deflate()
            .no_brotli()
            .no_zstd();
        match authorities {
            Some(authorities) => authorities.trusted_by(client),
            None => Ok(client),
        }
    };
    let client = match begin()?.build() {
        Err(_) if url.starts_with("http:") => begin()?.tls_certs_only([]).build(),
        built => built,
    };
    let client = client.map_err(|error| {
        let advice =
            "cannot create a client; install the certificates of public authorities, or name their file in SSL_CERT_FILE";
        failed(url, (StoreErrorKind::Fatal, advice), Words::of_error(&error))
    });
    Ok(Transport::new(Arc::new(client?)))
}

#[async_trait]
impl Policy for Edges {
    async fn send(&self, context: &Context, request: &mut Request, _next: &[Arc<dyn Policy>]) -> PolicyResult {
        let others = request.headers().get_optional_str(&USER_AGENT).unwrap_or_default();
        let all = format!("{others} {}", request::USER_AGENT);
        request.insert_header(USER_AGENT, all.trim_start().to_owned());
        let transport: &Transport = context.value().ok_or_else(|| {
            Error::with_message(ErrorKind::Other, "the request belongs to no call of the store; report this as a fault")
        })?;
        let (status, mut headers, body) = transport.send(context, request).await?.deconstruct();
        // The client would ask for whatever the server says is left, although every read here is of one range, and its sum
        // overflows at the largest number.
        headers.remove(HeaderName::from_static("content-range"));
        let body = beginning::of(body, beginning::limit(status.is_success()));
        Ok(AsyncRawResponse::new(status, headers, Box::pin(body)))
    }
}
