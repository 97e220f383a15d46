//! A server with limits.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use axum_server::{Handle, Server};
use hyper_util::rt::TokioTimer;
use tokio::runtime;
use tokio::sync::watch;

use super::connections::Connections;
use super::gate::AcceptGate;
use super::listener::{Caller, Listener, Socket};

/// The largest request, and the part of an answer that waits for a client who does not read.
const BUFFER: usize = 16 * 1024;

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Serving {
    address: Option<SocketAddr>,
    handle: Handle<Caller>,
    gate: AcceptGate,
    /// Has the problem if the server has failed, and closes when the server has ended.
    problem: watch::Receiver<Option<String>>,
}

impl Serving {
    /// Starts a server on a task of the current runtime, with the connections of this process's [budget](Connections). A
    /// client gets `patience` for the head of each of its requests, and for the pause between two requests.
    ///
    /// # Errors
    ///
    /// Outside a tokio runtime, and if the system refuses the socket.
    pub fn start(
        socket: impl Into<Socket>,
        tls: Option<RustlsConfig>,
        routes: Router,
        patience: Duration,
    ) -> io::Result<Self> {
        Self::start_within(Connections::of_process(), socket.into(), tls, routes, patience)
    }

    fn start_within(
        connections: Connections,
        socket: Socket,
        tls: Option<RustlsConfig>,
        routes: Router,
        patience: Duration,
    ) -> io::Result<Self> {
        let runtime = runtime::Handle::try_current().map_err(io::Error::other)?;
        let gate = AcceptGate::default();
        let listener = Listener::new(socket, connections, gate.clone())?;
        let address = listener.address()?;
        let (failed, problem) = watch::channel(None);
        let handle = Handle::new();
        let mut server: Server<Caller> = Server::from_listener(listener).handle(handle.clone());
        let mut http = server.http_builder().http1();
        http.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(BUFFER);
        runtime.spawn(async move {
            let routes = routes.layer(from_fn(turned_away_beyond_the_limit));
            let routes = routes.into_make_service_with_connect_info::<Caller>();
            let result = match tls {
                Some(tls) => server.acceptor(RustlsAcceptor::new(tls)).http1_only().serve(routes).await,
                None => server.http1_only().serve(routes).await,
            };
            failed.send_replace(result.err().map(|error| error.to_string()));
        });
        Ok(Self { address, handle, gate, problem })
    }

    /// The address of the server, with the port that the system has chosen for port 0; `None` for a socket within the
    /// machine.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Completes when the server has ended. Returns the problem, if there was one. Cancellation safe.
    pub fn ended(&self) -> impl Future<Output = Option<String>> + Send + use<> {
        let mut problem = self.problem.clone();
        async move {
            // An error means that the server has ended.
            while problem.changed().await.is_ok() {}
            problem.borrow().clone()
        }
    }

    /// Leaves new connections to another process that has the socket, too. Those that are open get `patience` to end by
    /// themselves, and `longest` while their client has asked, or has still to ask, and has no answer.
    pub async fn leave(&self, patience: Duration, longest: Duration) {
        // Those that remain are the server's, which ends them.
        self.gate.shut(patience, longest).await;
    }

    /// Accepts no more connections, and waits for the end of the server. Connections that are open get `grace` for their
    /// answers.
    pub async fn finish(&self, grace: Duration) {
        self.handle.graceful_shutdown(Some(grace));
        self.ended().await;
    }
}

/// The paths of probes, which everybody may ask for.
const PROBES: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Answers a request over a connection beyond the limit, and lets the budget know of one over another.
async fn turned_away_beyond_the_limit(
    ConnectInfo(caller): ConnectInfo<Caller>,
    request: Request,
    next: Next,
) -> Response {
    if caller.is_beyond {
        let headers = [(RETRY_AFTER, "2"), (CONNECTION, "close")];
        let problem = "this server has too many connections; try again, or ask another server\n";
        return (StatusCode::SERVICE_UNAVAILABLE, headers, problem).into_response();
    }
    // Whoever has asked only what needs no token makes room, or else strangers could keep all electors out.
    if !PROBES.contains(&request.uri().path()) {
        caller.asked();
    }
    next.run(request).await
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.handle.shutdown();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn who_leaves_waits_for_the_connections_that_are_open() {
        let long = Duration::from_secs(60);
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let serving = Serving::start(socket, None, Router::new(), long).unwrap();
        let mut client = TcpStream::connect(serving.address().unwrap()).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        client.read_u8().await.unwrap();
        let mut leave = pin!(serving.leave(long, long));
        assert!(timeout(Duration::ZERO, leave.as_mut()).await.is_err());
        drop(client);
        leave.await;
    }

    #[tokio::test]
    async fn who_leaves_waits_longer_for_a_client_without_an_answer() {
        let long = Duration::from_secs(60);
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let serving = Serving::start(socket, None, Router::new(), long).unwrap();
        let mut client = TcpStream::connect(serving.address().unwrap()).await.unwrap();
        // The connection is accepted once a client that came later is answered.
        let mut later = TcpStream::connect(serving.address().unwrap()).await.unwrap();
        later.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        later.read_u8().await.unwrap();
        let mut leave = pin!(serving.leave(Duration::ZERO, long));
        assert!(timeout(Duration::ZERO, leave.as_mut()).await.is_err());
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        client.read_u8().await.unwrap();
        leave.await;
    }

    async fn ask(client: &mut TcpStream) -> String {
        ask_for(client, "/").await
    }

    async fn ask_for(client: &mut TcpStream, path: &str) -> String {
        client.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = vec![0; 1024];
        let length = client.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    #[tokio::test]
    async fn a_client_beyond_the_limit_is_told_so_and_those_who_have_asked_are_served_on() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (connections, routes) = (Connections::at_most(3, true), Router::new());
        let long = Duration::from_secs(60);
        let serving = Serving::start_within(connections.clone(), socket.into(), None, routes, long).unwrap();
        let connect = async || TcpStream::connect(serving.address().unwrap()).await.unwrap();
        let mut served = Vec::new();
        for _ in 0..2 {
            served.push(connect().await);
            assert!(ask(served.last_mut().unwrap()).await.starts_with("HTTP/1.1 404"));
        }
        let mut silent = connect().await;
        ask_for(&mut silent, "/readyz").await;
        served.push(connect().await);
        assert!(ask(&mut served[2]).await.starts_with("HTTP/1.1 404"));
        let closed = timeout(Duration::from_secs(10), silent.read(&mut [0])).await;
        assert_eq!(closed.unwrap().unwrap(), 0, "who has asked as a probe does makes room");
        for round in 0..2 {
            let mut beyond = connect().await;
            let mut answer = ask(&mut beyond).await;
            let is_closed = beyond.read_to_string(&mut answer).await.is_ok();
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 2") && is_closed, "{answer}");
            for client in &mut served {
                assert!(ask(client).await.starts_with("HTTP/1.1 404"), "{round}");
            }
        }
        // Who asks nothing there is closed by those who come later, and keeps nobody from an answer.
        let mut strangers = Vec::new();
        for _ in 0..100 {
            strangers.push(connect().await);
        }
        assert!(ask(&mut connect().await).await.starts_with("HTTP/1.1 503"));
        assert!(connections.count() <= 3 + 64, "{}", connections.count());
        drop(served);
        let mut answers = Vec::new();
        while answers.len() < 10_000
            && !answers.last().is_some_and(|answer: &String| answer.starts_with("HTTP/1.1 404"))
        {
            answers.push(ask(&mut connect().await).await);
        }
        assert!(answers.len() < 10_000, "who leaves makes room");
    }
}
