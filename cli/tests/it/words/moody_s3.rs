//! An S3 with one object, whose mood changes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The server, with all of its connections.
#[derive(Debug)]
pub(super) struct MoodyS3 {
    address: SocketAddr,
    runtime: Option<Runtime>,
    mood: Arc<Mutex<Moods>>,
}

/// The answers to reads and to writes.
type Moods = [Mood; 2];

/// The answer to everything; `None` is the object.
type Mood = Option<(StatusCode, &'static str)>;

impl MoodyS3 {
    /// Starts a server that has the record `body` at `locks/a`, with the write id 1. The record may be renewed before each
    /// read. The server does not tell how old the object is.
    pub(super) fn start(body: String, renews: bool) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let mood = Arc::new(Mutex::new(Moods::default()));
        let now = Arc::clone(&mood);
        let renewals = Arc::new(AtomicU64::new(1));
        let answer = async move |method: Method, uri: Uri| {
            let version = renewals.fetch_add(u64::from(renews), Ordering::Relaxed);
            answer(*now.lock().unwrap(), &method, &uri, &body, version)
        };
        runtime.spawn(async {
            axum::serve(TcpListener::from_std(listener).unwrap(), Router::new().fallback(answer)).await
        });
        Self { address, runtime: Some(runtime), mood }
    }

    /// Closes the port and all connections.
    pub(super) fn go_away(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    pub(super) fn url(&self, key: &str) -> String {
        format!("s3://bucket/{key}?region=eu-central-1&path_style=true&endpoint=http://{}", self.address)
    }

    pub(super) fn set_mood(&self, status: u16, code: &'static str) {
        *self.mood.lock().unwrap() = [Some((StatusCode::from_u16(status).unwrap(), code)); 2];
    }

    /// Denies writes only.
    pub(super) fn deny_writes(&self) {
        self.mood.lock().unwrap()[1] = Some((StatusCode::FORBIDDEN, "AccessDenied"));
    }
}

fn answer(moods: Moods, method: &Method, uri: &Uri, body: &str, version: u64) -> Response {
    const LISTING: &str =
        "<ListBucketResult><Contents><Key>locks/a</Key><ETag>\"1\"</ETag></Contents></ListBucketResult>";
    match moods[usize::from(method != Method::GET)] {
        Some((status, code)) => (status, format!("<Error><Code>{code}</Code></Error>")).into_response(),
        None if method != Method::GET => StatusCode::PRECONDITION_FAILED.into_response(),
        None if uri.path().ends_with("/locks/a") => {
            let body = body.replace(r#""writeId":"1""#, &format!(r#""writeId":"{version}""#));
            ([("etag", format!("\"{version}\""))], body).into_response()
        }
        None => LISTING.into_response(),
    }
}

/// A runtime may not wait for its tasks in a test, which has its own.
impl Drop for MoodyS3 {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}
