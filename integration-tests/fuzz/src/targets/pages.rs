//! Requests to the pages, over a connection.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use leaderelection_serving::sockets::Serving;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use self::host::Hosts;
use crate::runtime::wait;
use crate::target::uncounted;

#[path = "../../../../cli/src/pages/http/host.rs"]
#[allow(dead_code, reason = "the options of a command line have no use here")]
mod host;

/// The site of a stranger, whose pages must not read ours.
const STRANGER: &str = "evil.example";

/// Far above the time of any answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Far above the size of any answer.
const LARGEST: u64 = 1 << 20;

struct World {
    address: SocketAddr,
    /// The hosts of the requests that were answered.
    answered: Arc<Mutex<Vec<String>>>,
    _server: Serving,
}

thread_local! {
    // On the thread of the target, so that its runtime drives the server too.
    static WORLD: World = uncounted(|| wait(World::begin()));
}

pub(super) fn pages(input: &[u8]) {
    WORLD.with(|world| {
        wait(async { timeout(PATIENCE, world.ask(input)).await }).expect("the server neither answers nor hangs up");
        let answered = std::mem::take(&mut *world.answered.lock().unwrap());
        for name in answered {
            // No browser sends what is no authority.
            let host = name.parse::<Authority>().map(|authority| authority.host().to_ascii_lowercase());
            assert!(!host.is_ok_and(|host| host.ends_with(STRANGER)), "{name:?} was answered");
        }
    });
}

impl World {
    async fn begin() -> Self {
        let answered = Arc::<Mutex<Vec<String>>>::default();
        let routes = Router::new().fallback({
            let answered = Arc::clone(&answered);
            async move |request: Request| {
                let named = request.headers().get_all(HOST).iter();
                let named = named.map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
                answered.lock().unwrap().extend(named);
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Serving::start(listener, None, Hosts::default().guard(routes), PATIENCE).unwrap();
        Self { address: server.address().unwrap(), answered, _server: server }
    }

    /// Sends all bytes, and reads all that comes back.
    async fn ask(&self, input: &[u8]) {
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        // The server may hang up in the middle.
        let _ = connection.write_all(input).await;
        let _ = connection.shutdown().await;
        let mut answer = Vec::new();
        let read = connection.take(LARGEST).read_to_end(&mut answer).await;
        assert!(read.is_err() || answer.is_empty() || answer.starts_with(b"HTTP/1."), "{answer:?}");
        assert!((answer.len() as u64) < LARGEST, "the answer has no end");
    }
}
