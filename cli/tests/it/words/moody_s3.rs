//! An S3 with one object, whose mood changes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;

/// The server, which ends with the runtime of its test.
#[derive(Debug)]
pub(super) struct MoodyS3 {
    address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
}

/// The answer to everything; `None` is the object.
type Mood = Option<(StatusCode, &'static str)>;

impl MoodyS3 {
    /// Starts a server that has the record `body` at `locks/a`, with the write id 1. The record may be renewed before each
    /// read. The server does not tell how old the object is.
    pub(super) async fn start(body: String, renews: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mood = Arc::new(Mutex::new(None));
        let now = Arc::clone(&mood);
        let renewals = Arc::new(AtomicU64::new(1));
        let answer = async move |method: Method, uri: Uri| {
            let version = renewals.fetch_add(u64::from(renews), Ordering::Relaxed);
            answer(*now.lock().unwrap(), &method, &uri, &body, version)
        };
        tokio::spawn(async { axum::serve(listener, Router::new().fallback(answer)).await });
        Self { address, mood }
    }

    pub(super) fn url(&self, key: &str) -> String {
        format!("s3://bucket/{key}?region=eu-central-1&path_style=true&endpoint=http://{}", self.address)
    }

    pub(super) fn set_mood(&self, status: u16, code: &'static str) {
        *self.mood.lock().unwrap() = Some((StatusCode::from_u16(status).unwrap(), code));
    }
}

fn answer(mood: Mood, method: &Method, uri: &Uri, body: &str, version: u64) -> Response {
    const LISTING: &str =
        "<ListBucketResult><Contents><Key>locks/a</Key><ETag>\"1\"</ETag></Contents></ListBucketResult>";
    match mood {
        Some((status, code)) => (status, format!("<Error><Code>{code}</Code></Error>")).into_response(),
        None if method != Method::GET => StatusCode::PRECONDITION_FAILED.into_response(),
        None if uri.path().ends_with("/locks/a") => {
            let body = body.replace(r#""writeId":"1""#, &format!(r#""writeId":"{version}""#));
            ([("etag", format!("\"{version}\""))], body).into_response()
        }
        None => LISTING.into_response(),
    }
}
