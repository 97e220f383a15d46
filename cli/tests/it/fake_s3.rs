//! An S3 that answers as a test wants it to.

use std::process::Command;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The server, until it is dropped.
#[derive(Debug)]
pub(crate) struct FakeS3 {
    endpoint: String,
    _runtime: Runtime,
}

impl FakeS3 {
    pub(crate) fn start(answer: fn(&Method, &Uri) -> (StatusCode, &'static str)) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(async move |method: Method, uri: Uri| answer(&method, &uri));
        runtime.spawn(async { axum::serve(listener, routes).await });
        Self { endpoint, _runtime: runtime }
    }

    pub(crate) fn url(&self, key: &str) -> String {
        format!("s3://bucket/{key}?endpoint={}", self.endpoint)
    }
}

/// Credentials, for a server that does not check them.
pub(crate) fn with_keys(mut command: Command) -> Command {
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hidden");
    command
}
