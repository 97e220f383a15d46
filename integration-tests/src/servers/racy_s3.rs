//! An S3 server that checks the condition of a write, and writes a moment later without another check.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ETAG, HeaderMap, IF_MATCH, IF_NONE_MATCH};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The server, on threads and a port of its own, until it is dropped.
#[derive(Debug)]
pub struct RacyS3 {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Objects {
    content: std::sync::Mutex<BTreeMap<String, (String, Bytes)>>,
    writes: AtomicU64,
    window: Duration,
}

impl RacyS3 {
    /// Starts a server on which a write is lost on another one that comes within `window` after its check.
    ///
    /// # Panics
    ///
    /// If there are no threads or ports left.
    #[must_use]
    pub fn start(window: Duration) -> Self {
        Self::start_with(window, true)
    }

    /// Starts a server without this fault that closes each connection after one answer.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn closing() -> Self {
        Self::start_with(Duration::ZERO, false)
    }

    fn start_with(window: Duration, keeps_alive: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
        let runtime = runtime.expect("threads for a server");
        // Started from the test's own runtime, which must not wait for another one.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port on the loopback interface");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("a bound listener has an address");
        let objects = Arc::new(Objects { content: std::sync::Mutex::default(), writes: AtomicU64::default(), window });
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                let objects = Arc::clone(&objects);
                stream.set_nodelay(true).expect("a socket");
                tokio::spawn(async move {
                    let service = service_fn(|request| objects.answer(request));
                    let mut server = http1::Builder::new();
                    let server = server.keep_alive(keeps_alive);
                    let _gone = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, runtime: Some(runtime) }
    }

    /// The URL of the server, such as `http://127.0.0.1:31234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port of the server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for RacyS3 {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Objects {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let path = head.uri.path();
        Ok(match head.method {
            Method::PUT => self.put(path, body, &head.headers),
            Method::DELETE => {
                self.lock().remove(path);
                answer(StatusCode::NO_CONTENT, None, Bytes::new())
            }
            _ => match self.lock().get(path).cloned() {
                Some((etag, body)) => answer(StatusCode::OK, Some(&etag), body),
                None => answer(StatusCode::NOT_FOUND, None, "<Error><Code>NoSuchKey</Code></Error>".into()),
            },
        })
    }

    fn put(&self, path: &str, body: Bytes, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let found = self.lock().get(path).map(|(etag, _)| etag.clone());
        let holds = match headers.get(IF_MATCH) {
            Some(named) => found.is_some_and(|found| named.as_bytes() == found.as_bytes()),
            None => found.is_none() || !headers.contains_key(IF_NONE_MATCH),
        };
        if !holds {
            return answer(StatusCode::PRECONDITION_FAILED, None, Bytes::new());
        }
        // The fault itself: a write to a disk blocks its thread, and another thread checks the condition meanwhile.
        std::thread::sleep(self.window);
        let etag = format!("\"{}\"", self.writes.fetch_add(1, Ordering::Relaxed));
        self.lock().insert(path.to_owned(), (etag.clone(), body));
        answer(StatusCode::OK, Some(&etag), Bytes::new())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (String, Bytes)>> {
        self.content.lock().expect("no request panics while it holds this")
    }
}

fn answer(status: StatusCode, etag: Option<&str>, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    if let Some(etag) = etag {
        response.headers_mut().insert(ETAG, etag.parse().expect("a header"));
    }
    response
}
