//! The limit on concurrent connections.

use std::future::{Ready, ready};
use std::io;
use std::net::SocketAddr;

use axum_server::Handle;
use axum_server::accept::Accept;
use futures_util::future::Either;

/// The limit is far above any legitimate need, and far below the number of files that a process may open.
/// Foreign connections must not keep the elector from its store.
const MOST: usize = 128;

/// Closes connections above the limit.
#[derive(Clone, Debug)]
pub(super) struct Limit(Handle<SocketAddr>);

impl Limit {
    /// Creates the limit for the server of this handle, which counts the connections.
    pub(super) fn new(handle: Handle<SocketAddr>) -> Self {
        Self(handle)
    }

    /// Applies the limit before the acceptor, and so before any handshake.
    pub(super) fn before<A>(self, acceptor: A) -> Limited<A> {
        Limited { limit: self, acceptor }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Limited<A> {
    limit: Limit,
    acceptor: A,
}

impl<A: Accept<I, S>, I, S> Accept<I, S> for Limited<A> {
    type Stream = A::Stream;
    type Service = A::Service;
    type Future = Either<A::Future, Ready<io::Result<(A::Stream, A::Service)>>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        // The count already includes this connection.
        if self.limit.0.connection_count() > MOST {
            return Either::Right(ready(Err(io::Error::other("too many connections"))));
        }
        Either::Left(self.acceptor.accept(stream, service))
    }
}
