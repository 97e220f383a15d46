//! An S3 in memory that takes its time for each answer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

/// The objects of a page of a listing, as in S3.
const PAGE: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct SlowS3 {
    objects: Mutex<BTreeMap<String, (String, Bytes)>>,
    writes: AtomicU64,
    /// In milliseconds.
    delay: AtomicU64,
}

impl SlowS3 {
    /// Starts the server, and returns it with the URL of a folder.
    pub(crate) async fn start() -> (Arc<Self>, String) {
        let server = Arc::<Self>::default();
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&server));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async { axum::serve(listener, routes).await });
        (server, format!("s3://bucket/leases?endpoint=http://{address}"))
    }

    pub(crate) fn set_delay(&self, delay: Duration) {
        self.delay.store(u64::try_from(delay.as_millis()).unwrap(), Ordering::Relaxed);
    }

    fn put(&self, key: &str, headers: &HeaderMap, body: Bytes) -> Response {
        let mut objects = self.objects.lock().unwrap();
        let found = objects.get(key).map(|(etag, _)| etag.as_bytes());
        let holds = match headers.get(IF_MATCH) {
            Some(named) => found == Some(named.as_bytes()),
            None => found.is_none() || !headers.contains_key(IF_NONE_MATCH),
        };
        if !holds {
            return StatusCode::PRECONDITION_FAILED.into_response();
        }
        let etag = format!("\"{:032x}\"", self.writes.fetch_add(1, Ordering::Relaxed));
        objects.insert(key.to_owned(), (etag.clone(), body));
        [(ETAG, etag)].into_response()
    }

    fn list(&self, query: &BTreeMap<String, String>) -> String {
        let text = |name: &str| query.get(name).cloned().unwrap_or_default();
        let (prefix, behind) = (text("prefix"), text("continuation-token") + &text("start-after"));
        let objects = self.objects.lock().unwrap();
        let first = if behind.is_empty() { &prefix } else { &behind };
        let mut found = objects.range(first.clone()..).filter(|(key, _)| **key != behind).peekable();
        let (mut page, mut last) = (String::new(), String::new());
        for _ in 0..PAGE {
            let Some((key, (etag, body))) = found.next_if(|(key, _)| key.starts_with(&prefix)) else { break };
            let (etag, size) = (etag.replace('"', "&quot;"), body.len());
            write!(page, "<Contents><Key>{key}</Key><LastModified>2026-02-02T10:15:30.000Z</LastModified><ETag>{etag}</ETag><Size>{size}</Size></Contents>").unwrap();
            last.clone_from(key);
        }
        let is_cut = found.next_if(|(key, _)| key.starts_with(&prefix)).is_some();
        let next =
            if is_cut { format!("<NextContinuationToken>{last}</NextContinuationToken>") } else { String::new() };
        format!(
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bucket</Name>\
             <IsTruncated>{is_cut}</IsTruncated>{next}{page}</ListBucketResult>"
        )
    }
}

async fn answer(
    State(server): State<Arc<SlowS3>>,
    method: Method,
    uri: Uri,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    tokio::time::sleep(Duration::from_millis(server.delay.load(Ordering::Relaxed))).await;
    let key = uri.path().trim_start_matches("/bucket").trim_start_matches('/');
    if method == Method::PUT {
        return server.put(key, &headers, body);
    }
    if query.contains_key("list-type") {
        return server.list(&query).into_response();
    }
    match server.objects.lock().unwrap().get(key).cloned() {
        Some((etag, body)) => ([(ETAG, etag)], body).into_response(),
        None => (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>").into_response(),
    }
}
