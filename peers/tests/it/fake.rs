//! Something else at the address of a leader. It keeps all bytes that it gets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::SECRET;

/// The answer to every request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Nothing, while the connection stays open.
    Nothing,
    /// These bytes, and then nothing.
    Bytes(Vec<u8>),
    /// These bytes, and then the end, as if the process had been killed.
    Cut(Vec<u8>),
    /// The first bytes, and then the second ones without end.
    Endless(Vec<u8>, Vec<u8>),
}

/// A server that knows nothing of elections.
#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Fake {
    pub(crate) async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::<Mutex<Vec<u8>>>::default();
        let seen = Arc::clone(&got);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer.clone(), Arc::clone(&seen)));
            }
        });
        Self { address, got }
    }

    /// Answers with a head and a body.
    pub(crate) async fn saying(status: &str, headers: &str, body: &str) -> Self {
        Self::start(Answer::Bytes(format!("HTTP/1.1 {status}\r\n{headers}\r\n{body}").into_bytes())).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/health/leadership", self.address)
    }

    /// All bytes so far. Nothing of a secret is among them.
    pub(crate) fn got(&self) -> String {
        let got = String::from_utf8_lossy(&self.got.lock().unwrap()).into_owned();
        for secret in [SECRET, "Authorization", "authorization", "Cookie", "Bearer"] {
            assert!(!got.contains(secret), "{got}");
        }
        got
    }
}

async fn serve(mut stream: TcpStream, answer: Answer, seen: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                request.extend_from_slice(&buffer[..read]);
                seen.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        }
    }
    match answer {
        Answer::Nothing => {}
        Answer::Bytes(bytes) => drop(stream.write_all(&bytes).await),
        Answer::Cut(bytes) => return drop(stream.write_all(&bytes).await),
        Answer::Endless(first, again) => {
            let mut sent = stream.write_all(&first).await;
            while sent.is_ok() {
                sent = stream.write_all(&again).await;
            }
            return;
        }
    }
    // The other side hangs up.
    while let Ok(1..) = stream.read(&mut buffer).await {}
}
