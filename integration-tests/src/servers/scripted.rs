//! An HTTP server with scripted answers, including faulty ones.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::mutex::lock;

/// The treatment of one request after it has been read.
#[derive(Clone, Debug)]
pub enum Step {
    /// An answer.
    Answer(Answer),
    /// An answer whose connection closes before the last `missing` bytes of the body.
    Truncated {
        /// The announced answer.
        answer: Answer,
        /// The number of bytes of the body that are not sent.
        missing: usize,
    },
    /// An answer whose last `missing` bytes never arrive, while the connection stays open.
    Stalled {
        /// The announced answer.
        answer: Answer,
        /// The number of bytes of the body that are not sent.
        missing: usize,
    },
    /// An answer whose body has no end. It is chunked, and begins with the body of the answer.
    Endless(Answer),
    /// No answer, and the connection stays open.
    Hang,
    /// No answer, and the connection is closed.
    Close,
    /// No answer, and the connection is reset.
    Reset,
}

/// A status, headers and a body. `content-length` is added.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    chunked: bool,
}

impl Answer {
    /// An answer without headers or body.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new(), chunked: false }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into().into();
        self
    }

    /// Sends the body without announcing its length.
    #[must_use]
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    fn head_and_body(&self) -> (Vec<u8>, Vec<u8>) {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if !self.chunked {
            let _ = write!(head, "content-length: {}\r\n\r\n", self.body.len());
            return (head.into_bytes(), self.body.to_vec());
        }
        head.push_str("transfer-encoding: chunked\r\n\r\n");
        let mut body = format!("{:x}\r\n", self.body.len()).into_bytes();
        body.extend_from_slice(&self.body);
        body.extend_from_slice(b"\r\n0\r\n\r\n");
        (head.into_bytes(), body)
    }
}

impl From<Answer> for Step {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method, such as `PUT`.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// The headers with their names in lower case, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The content.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header, if there is one. `name` is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// The server. It listens on a port of its own on the loopback interface until it is dropped.
///
/// Requests get the scripted steps in order of arrival. After the last step, requests are answered with `418`,
/// which no client retries, and recorded like the others.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    endless: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl ScriptedServer {
    /// Starts a server with this script.
    pub async fn start(script: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on the loopback interface");
        let address = listener.local_addr().expect("a bound listener has an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let endless = Arc::default();
        let state = Arc::new(State {
            script: Mutex::new(script.into_iter().collect()),
            requests: Arc::clone(&requests),
            endless: Arc::clone(&endless),
        });
        let accepting = tokio::spawn(async move {
            // Dropping the set closes the connections together with the server.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = state.clone();
                connections.spawn(async move { state.serve(stream).await });
            }
        });
        Self { address, requests, endless, accepting }
    }

    /// The URL of the server, such as `http://127.0.0.1:31234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of bytes of [endless](Step::Endless) bodies that the system has taken so far. The client need not
    /// have read them.
    #[must_use]
    pub fn endless_bytes(&self) -> u64 {
        self.endless.load(Ordering::Relaxed)
    }

    /// Returns the requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct State {
    script: Mutex<VecDeque<Step>>,
    requests: Arc<Mutex<Vec<Request>>>,
    endless: Arc<AtomicU64>,
}

impl State {
    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut buffer = BytesMut::new();
        loop {
            let request = read_request(&mut stream, &mut buffer).await?;
            lock(&self.requests).push(request);
            let step = lock(&self.script).pop_front().unwrap_or_else(|| Answer::new(418).into());
            match step {
                Step::Answer(answer) => send(&mut stream, &answer, 0).await?,
                Step::Truncated { answer, missing } => return send(&mut stream, &answer, missing).await,
                Step::Stalled { answer, missing } => {
                    send(&mut stream, &answer, missing).await?;
                    return std::future::pending().await;
                }
                Step::Endless(answer) => return self.send_without_end(&mut stream, &answer.chunked()).await,
                Step::Hang => return std::future::pending().await,
                Step::Close => return None,
                Step::Reset => return stream.set_zero_linger().ok(),
            }
        }
    }
}

impl State {
    async fn send_without_end(&self, stream: &mut TcpStream, answer: &Answer) -> Option<()> {
        const CHUNK: usize = 16 << 10;
        let (head, body) = answer.head_and_body();
        stream.write_all(&head).await.ok()?;
        let first = body.strip_suffix(b"0\r\n\r\n").filter(|_| !answer.body.is_empty());
        stream.write_all(first.unwrap_or_default()).await.ok()?;
        let chunk = [format!("{CHUNK:x}\r\n").into_bytes(), vec![b' '; CHUNK], b"\r\n".to_vec()].concat();
        loop {
            stream.write_all(&chunk).await.ok()?;
            self.endless.fetch_add(CHUNK as u64, Ordering::Relaxed);
        }
    }
}

async fn send(stream: &mut TcpStream, answer: &Answer, missing: usize) -> Option<()> {
    let (head, body) = answer.head_and_body();
    stream.write_all(&head).await.ok()?;
    stream.write_all(&body[..body.len() - missing]).await.ok()
}

async fn read_request(stream: &mut TcpStream, buffer: &mut BytesMut) -> Option<Request> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end;
        }
        fill(stream, buffer).await?;
    };
    let head = buffer.split_to(end + 4);
    let mut lines = std::str::from_utf8(&head).ok()?.lines();
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request { method, target, headers, body: Vec::new() };
    if request.header("transfer-encoding") == Some("chunked") {
        request.body = read_chunks(stream, buffer).await?;
        return Some(request);
    }
    let length = request.header("content-length").map_or(Some(0), |length| length.parse().ok())?;
    while buffer.len() < length {
        fill(stream, buffer).await?;
    }
    request.body = buffer.split_to(length).to_vec();
    Some(request)
}

async fn read_chunks(stream: &mut TcpStream, buffer: &mut BytesMut) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = buffer.windows(2).position(|bytes| bytes == b"\r\n") {
                break end;
            }
            fill(stream, buffer).await?;
        };
        let size = usize::from_str_radix(std::str::from_utf8(&buffer[..end]).ok()?, 16).ok()?;
        while buffer.len() < end + 2 + size + 2 {
            fill(stream, buffer).await?;
        }
        let chunk = buffer.split_to(end + 2 + size + 2);
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(&chunk[end + 2..end + 2 + size]);
    }
}

async fn fill(stream: &mut TcpStream, buffer: &mut BytesMut) -> Option<()> {
    let read = stream.read_buf(buffer).await.ok()?;
    (read > 0).then_some(())
}
