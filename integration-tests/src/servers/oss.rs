//! A server that speaks the part of Alibaba OSS that can create an object and not replace one on a condition.
//!
//! The server refuses what it does not know with 501, as OSS refuses `If-Match` on a write, and ignores nothing silently.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::header::{ETAG, HeaderMap};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The header that makes a write a creation.
const FORBID_OVERWRITE: &str = "x-oss-forbid-overwrite";

const BUCKET: &str = "/bucket";

type Answer = Response<Full<Bytes>>;

/// The server, with one bucket, until it is dropped.
#[derive(Debug)]
pub struct Oss {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Objects {
    /// The bucket keeps versions, so that the condition of a creation has no effect.
    has_versions: bool,
    content: Mutex<BTreeMap<String, Bytes>>,
}

impl Oss {
    /// Starts a server on a port of its own.
    ///
    /// # Panics
    ///
    /// If there is no port left.
    pub async fn start() -> Self {
        Self::of(Objects::default()).await
    }

    /// Starts a server with a bucket that has versions, where OSS ignores the condition of a creation.
    ///
    /// # Panics
    ///
    /// If there is no port left.
    pub async fn with_versions() -> Self {
        Self::of(Objects { has_versions: true, ..Objects::default() }).await
    }

    async fn of(objects: Objects) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on the loopback interface");
        let address = listener.local_addr().expect("a bound listener has an address");
        let objects = Arc::new(objects);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let objects = Arc::clone(&objects);
                tokio::spawn(async move {
                    let service = service_fn(|request| objects.answer(request));
                    let _gone = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, accepting }
    }

    /// The URL of the server, such as `http://127.0.0.1:31234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Oss {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Objects {
    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        let path = percent_decode_str(head.uri.path()).decode_utf8_lossy();
        let conditions = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
        let is_conditional = conditions.iter().any(|name| head.headers.contains_key(*name));
        Ok(match (head.method, path.strip_prefix(BUCKET).map(|key| key.trim_start_matches('/'))) {
            (_, None) => refused(StatusCode::NOT_FOUND, "NoSuchBucket"),
            _ if is_conditional => refused(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
            (Method::GET, Some("")) => self.list(head.uri.query().unwrap_or_default()),
            (Method::GET, Some(key)) if head.uri.query().is_none() => self.read(key),
            (Method::PUT, Some(key)) if head.uri.query().is_none() => self.create(key, body, &head.headers),
            (Method::DELETE, Some(key)) if head.uri.query().is_none() => {
                self.lock().remove(key);
                answer(StatusCode::NO_CONTENT, Bytes::new())
            }
            _ => refused(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
        })
    }

    fn read(&self, key: &str) -> Answer {
        match self.lock().get(key) {
            Some(body) => answer(StatusCode::OK, body.clone()),
            None => refused(StatusCode::NOT_FOUND, "NoSuchKey"),
        }
    }

    fn create(&self, key: &str, body: Bytes, headers: &HeaderMap) -> Answer {
        if headers.get(FORBID_OVERWRITE).is_none_or(|value| value != "true") {
            return refused(StatusCode::NOT_IMPLEMENTED, "NotImplemented");
        }
        let mut objects = self.lock();
        if objects.contains_key(key) && !self.has_versions {
            return refused(StatusCode::CONFLICT, "FileAlreadyExists");
        }
        objects.insert(key.to_owned(), body);
        answer(StatusCode::OK, Bytes::new())
    }

    fn list(&self, query: &str) -> Answer {
        let (mut prefix, mut after) = (String::new(), String::new());
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "list-type" if value == "2" => {}
                "max-keys" => {}
                "prefix" => prefix = value,
                "start-after" => after = value,
                _ => return refused(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
            }
        }
        let mut listing = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
        for (key, body) in self.lock().iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after) {
            let size = body.len();
            let _ = write!(
                listing,
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                 <ETag>\"0\"</ETag><Size>{size}</Size></Contents>"
            );
        }
        listing.push_str("</ListBucketResult>");
        answer(StatusCode::OK, listing.into())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.content.lock().expect("no request panics while it holds this")
    }
}

fn refused(status: StatusCode, code: &str) -> Answer {
    answer(status, format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>").into())
}

fn answer(status: StatusCode, body: Bytes) -> Answer {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(ETAG, "\"0\"".parse().expect("a header"));
    response
}
