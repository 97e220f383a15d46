//! An S3 that takes every write, whatever its conditions say.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The server, until it is dropped.
#[derive(Debug)]
pub(crate) struct CarelessS3 {
    address: SocketAddr,
    task: JoinHandle<std::io::Result<()>>,
}

#[derive(Debug, Default)]
struct Objects {
    content: Mutex<BTreeMap<String, (String, Bytes)>>,
    writes: AtomicU64,
}

impl CarelessS3 {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let objects: &Objects = Box::leak(Box::default());
        let routes = Router::new().fallback(async |method, uri: Uri, body| objects.answer(&method, uri.path(), body));
        Self { address, task: tokio::spawn(async { axum::serve(listener, routes).await }) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for CarelessS3 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Objects {
    fn answer(&self, method: &Method, path: &str, body: Bytes) -> Response {
        let mut content = self.content.lock().unwrap();
        let tagged = |tag: &str| HeaderMap::from_iter([(ETAG, tag.parse().unwrap())]);
        match (method, content.get(path)) {
            (&Method::PUT, _) => {
                let tag = format!("\"{}\"", self.writes.fetch_add(1, Ordering::Relaxed));
                let answer = tagged(&tag).into_response();
                content.insert(path.to_owned(), (tag, body));
                answer
            }
            (&Method::DELETE, _) => {
                content.remove(path);
                StatusCode::NO_CONTENT.into_response()
            }
            (_, Some((tag, body))) => (tagged(tag), body.clone()).into_response(),
            (_, None) => (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>").into_response(),
        }
    }
}
