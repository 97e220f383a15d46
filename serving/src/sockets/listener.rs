//! The connections of a listening socket, within a budget.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum_server::{AddrListener, Address};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio_util::either::Either;

use super::connections::Connections;
use super::gate::{AcceptGate, Admitted};
use super::permit::{ConnectionPermit, Stream};
use super::write_timeout::WriteTimeout;

/// A socket that listens.
#[derive(Debug)]
pub enum Socket {
    /// Over the network.
    Tcp(std::net::TcpListener),
    /// Within this machine, at a path of its file system.
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener),
}

impl From<std::net::TcpListener> for Socket {
    fn from(listener: std::net::TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

/// A listening socket whose connections count in a budget.
#[derive(Debug)]
pub(crate) struct Listener {
    kind: Kind,
    connections: Connections,
    gate: AcceptGate,
}

impl Listener {
    pub(super) fn new(socket: Socket, connections: Connections, gate: AcceptGate) -> io::Result<Self> {
        let kind = match socket {
            Socket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Kind::Tcp(TcpListener::from_std(listener)?)
            }
            #[cfg(unix)]
            Socket::Unix(listener) => {
                listener.set_nonblocking(true)?;
                Kind::Unix(UnixListener::from_std(listener)?)
            }
        };
        Ok(Self { kind, connections, gate })
    }

    /// The address; `None` if the socket is one within the machine.
    pub(super) fn address(&self) -> io::Result<Option<SocketAddr>> {
        match &self.kind {
            Kind::Tcp(listener) => listener.local_addr().map(Some),
            #[cfg(unix)]
            Kind::Unix(_) => Ok(None),
        }
    }

    async fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Or else a message soon after another waits for up to 40 ms. An error means that the connection is
                // over.
                let _ = stream.set_nodelay(true);
                Ok((Either::Left(stream), Some(address)))
            }
            #[cfg(unix)]
            Kind::Unix(listener) => Ok((Either::Right(listener.accept().await?.0), None)),
        }
    }
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// `None` within the machine.
    address: Option<SocketAddr>,
    /// The permit of its connection; `None` for the listener itself.
    permit: Option<Arc<ConnectionPermit>>,
    /// There are too many connections beside this one.
    pub(super) is_beyond: bool,
}

impl Caller {
    fn at(address: Option<SocketAddr>) -> Self {
        Self { address, permit: None, is_beyond: false }
    }

    /// Notes that a whole request has come.
    pub(super) fn asked(&self) {
        self.permit.iter().for_each(|permit| permit.asked());
    }
}

impl Connected<Self> for Caller {
    fn connect_info(caller: Self) -> Self {
        caller
    }
}

impl Address for Caller {
    type Stream = WriteTimeout<Connection>;
    type Listener = Listener;
}

impl AddrListener<WriteTimeout<Connection>, Caller> for Listener {
    async fn bind_to(caller: Caller) -> io::Result<Self> {
        let address = caller.address.ok_or(io::ErrorKind::AddrNotAvailable)?;
        Self::new(std::net::TcpListener::bind(address)?.into(), Connections::of_process(), AcceptGate::default())
    }

    async fn accept_stream(&self) -> io::Result<(WriteTimeout<Connection>, Caller)> {
        let (inside, accepted) = self.gate.open_to(self.accept()).await;
        let (stream, address) = accepted?;
        let permit = Arc::new(ConnectionPermit::new(stream));
        let ((number, is_beyond), connections) =
            (self.connections.admit(Arc::clone(&permit)), self.connections.clone());
        let caller = Caller { address, permit: Some(Arc::clone(&permit)), is_beyond };
        Ok((WriteTimeout::new(Connection { permit, number, connections, inside }), caller))
    }

    fn get_local_addr(&self) -> io::Result<Caller> {
        self.address().map(Caller::at)
    }
}

/// A stream that fails as soon as the budget has closed it.
#[derive(Debug)]
pub(crate) struct Connection {
    permit: Arc<ConnectionPermit>,
    /// The place among the connections of the budget.
    number: u64,
    connections: Connections,
    inside: Admitted,
}

impl Connection {
    fn received(&mut self) {
        self.number = self.connections.received(self.number);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.leave(self.number);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = self.permit.poll(context, |stream, context| stream.poll_read(context, buffer));
        if buffer.filled().len() > before {
            self.inside.has_asked();
            self.received();
        }
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = self.permit.poll(context, |stream, context| stream.poll_write_vectored(context, bytes));
        if matches!(polled, Poll::Ready(Ok(1..))) {
            self.inside.was_answered();
            self.received();
        }
        polled
    }

    /// Or else hyper copies answers to a buffer of the connection, which stays as large as the largest part.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.permit.poll(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.permit.poll(context, |stream, context| stream.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn listener(most: usize) -> Listener {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        Listener::new(socket.into(), Connections::at_most(most, false), AcceptGate::default()).unwrap()
    }

    async fn pair(listener: &Listener) -> (WriteTimeout<Connection>, TcpStream) {
        let address = listener.address().unwrap();
        let theirs = TcpStream::connect(address.unwrap()).await.unwrap();
        (listener.accept_stream().await.unwrap().0, theirs)
    }

    async fn is_closed(theirs: &mut TcpStream) -> bool {
        // A socket that is closed before all of its bytes were read is reset.
        theirs.read(&mut [0]).await.map_or(true, |read| read == 0)
    }

    #[tokio::test]
    async fn who_was_silent_for_longest_makes_room_before_its_task_has_a_turn() {
        let listener = listener(2).await;
        let (mut speaks, mut speaker) = pair(&listener).await;
        let (_silent, mut stranger) = pair(&listener).await;
        speaker.write_u8(1).await.unwrap();
        assert_eq!(speaks.read_u8().await.unwrap(), 1);
        let (_third, _theirs) = pair(&listener).await;
        assert!(is_closed(&mut stranger).await);
        speaks.write_u8(2).await.unwrap();
        assert_eq!(speaker.read_u8().await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_connection_that_makes_room_ends_whether_it_reads_or_writes() {
        let listener = listener(2).await;
        let ((mut reads, _first), (mut writes, _second)) = (pair(&listener).await, pair(&listener).await);
        let read = tokio::spawn(async move { reads.read_u8().await.unwrap_err().kind() });
        let written = tokio::spawn(async move {
            let flood = vec![0; 1 << 20];
            loop {
                if let Err(error) = writes.write_all(&flood).await {
                    return error.kind();
                }
            }
        });
        tokio::task::yield_now().await;
        assert!(!read.is_finished() && !written.is_finished());
        let (_third, _fourth) = (pair(&listener).await, pair(&listener).await);
        assert_eq!(read.await.unwrap(), io::ErrorKind::ConnectionAborted);
        assert_eq!(written.await.unwrap(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn a_head_and_a_body_are_sent_together_and_without_a_copy() {
        let listener = listener(1).await;
        let (mut writes, mut theirs) = pair(&listener).await;
        assert!(writes.is_write_vectored());
        assert_eq!(writes.write_vectored(&[IoSlice::new(b"head"), IoSlice::new(b"body")]).await.unwrap(), 8);
        let mut received = [0; 8];
        theirs.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"headbody");
    }

    #[tokio::test]
    async fn a_short_word_does_not_wait_for_the_answer_to_the_one_before() {
        let listener = listener(1).await;
        let address = listener.address().unwrap();
        let _theirs = TcpStream::connect(address.unwrap()).await.unwrap();
        let Either::Left(stream) = listener.accept().await.unwrap().0 else { panic!("a socket within the machine") };
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn a_connection_that_ends_leaves_its_place() {
        let listener = listener(2).await;
        let (mut first, mut their_first) = pair(&listener).await;
        for _ in 0..3 {
            drop(pair(&listener).await);
        }
        first.write_u8(7).await.unwrap();
        assert_eq!(their_first.read_u8().await.unwrap(), 7);
        drop(first);
        assert_eq!(listener.connections.count(), 0);
    }
}
