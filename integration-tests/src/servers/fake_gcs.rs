//! A fake of Google Cloud Storage, in the test's own process.
//!
//! No emulator that can be installed from a package registry enforces preconditions under a race. The fake supports
//! only the requests of the store: uploads in one piece and whole downloads over JSON, deletions and listings over
//! gRPC, all on one port. The fake follows Google's documentation and the requests of the real client. Only the tests
//! against a real bucket show whether Google's servers behave in the same way.

mod grpc;
mod json;
mod state;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use google_cloud_auth::credentials::anonymous;
use google_cloud_storage::client::{Storage, StorageControl};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{JoinHandle, JoinSet};

use crate::mutex::lock;
pub use state::{BUCKET, Fault, Options};
use state::{Response, State};

/// The server. It listens on a port of its own on the loopback interface until it is dropped.
#[derive(Debug)]
pub struct FakeGcs {
    address: SocketAddr,
    /// A socket that does not listen, and keeps the port from others while the server is stopped.
    _port: TcpSocket,
    state: Arc<State>,
    serving: Mutex<JoinHandle<()>>,
}

impl FakeGcs {
    /// Starts a server with an empty bucket.
    pub async fn start(options: Options) -> Self {
        let port = bound(SocketAddr::from(([127, 0, 0, 1], 0)));
        let address = port.local_addr().expect("a bound socket has an address");
        let state = Arc::new(State { options, ..State::default() });
        let serving = Mutex::new(tokio::spawn(serve(listener_at(address), state.clone())));
        Self { address, _port: port, state, serving }
    }

    /// Ends the server in the midst of its requests, and keeps its objects. From now on it refuses connections.
    pub fn stop(&self) {
        lock(&self.serving).abort();
    }

    /// Starts the server again after [`stop`](Self::stop), at the same address and with the same objects.
    pub async fn start_again(&self) {
        // Two listeners at one address would share its connections.
        let ended = std::mem::replace(&mut *lock(&self.serving), tokio::spawn(async {}));
        let _ = ended.await;
        *lock(&self.serving) = tokio::spawn(serve(listener_at(self.address), self.state.clone()));
    }

    /// Lets the server carry out and answer nothing before it goes on, as when its process is frozen.
    pub fn set_frozen(&self, is_frozen: bool) {
        self.state.is_frozen.send_replace(is_frozen);
    }

    /// The URL of the server, such as `http://127.0.0.1:31234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client for objects, with the SDK's defaults.
    pub async fn client(&self) -> Storage {
        let builder = Storage::builder().with_endpoint(self.url());
        let builder = builder.with_credentials(anonymous::Builder::new().build());
        builder.build().await.expect("a client")
    }

    /// A function that creates a client for deletions and listings.
    pub fn control(&self) -> impl Fn() -> google_cloud_storage::builder::storage_control::ClientBuilder + use<> {
        let url = self.url();
        move || {
            let credentials = anonymous::Builder::new().build();
            StorageControl::builder().with_endpoint(&url).with_credentials(credentials)
        }
    }

    /// Spoils the next requests, one fault for each.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        lock(&self.state.faults).extend(faults);
    }

    /// Returns the requests so far: methods and paths.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        lock(&self.state.requests).clone()
    }

    /// The number of writes that were refused because they followed another write too soon.
    #[must_use]
    pub fn refused_writes(&self) -> usize {
        lock(&self.state.bucket).refused_writes
    }

    /// Stores an object unconditionally.
    pub fn put(&self, name: &str, body: impl Into<Bytes>) {
        lock(&self.state.bucket).write(name, None, body.into(), None).expect("no precondition and no limit");
    }

    /// The body of an object.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<Bytes> {
        lock(&self.state.bucket).objects.get(name).map(|object| object.body.clone())
    }
}

impl Drop for FakeGcs {
    fn drop(&mut self) {
        lock(&self.serving).abort();
    }
}

/// Binds a socket to an address that sockets of this function may share.
fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseport(true).expect("an option of the system");
    socket.bind(address).expect("a port on the loopback interface");
    socket
}

fn listener_at(address: SocketAddr) -> TcpListener {
    bound(address).listen(1024).expect("a listener")
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    // Dropping the set closes the connections together with the server.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| answer(state.clone(), request));
            let server = auto::Builder::new(TokioExecutor::new());
            // An error means that the client has gone or that a fault was planned.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(state: Arc<State>, request: hyper::Request<Incoming>) -> Result<Response, &'static str> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| "the client went away")?.to_bytes();
    lock(&state.requests).push(format!("{} {}", head.method, head.uri.path()));
    let unfrozen = async || state.is_frozen.subscribe().wait_for(|is_frozen| !is_frozen).await.map(drop);
    unfrozen().await.map_err(|_| "the server has ended")?;
    let fault = lock(&state.faults).pop_front();
    let is_grpc = head.headers.get("content-type").is_some_and(|kind| kind == "application/grpc");
    match fault {
        Some(Fault::Status(status)) => return Ok(json::error(status, "injected", "a fault of the test")),
        Some(Fault::Grpc(code, message)) => return Ok(grpc::error(code, message)),
        Some(Fault::Hang) => return std::future::pending().await,
        _ => {}
    }
    let answer = if is_grpc { grpc::answer(&state, &head, &body) } else { json::answer(&state, &head, &body) };
    unfrozen().await.map_err(|_| "the server has ended")?;
    match fault {
        Some(Fault::LoseAnswer) => Err("a fault of the test"),
        Some(Fault::AnswerUnavailable) => Ok(json::error(503, "backendError", "a fault of the test")),
        _ => Ok(answer),
    }
}
