//! Pages and answers over HTTP: the socket, access control, TLS, and the limit on connections.

mod access;
mod connections;
mod ending;
mod server;
mod signals;
mod site;
mod tls;

pub(crate) use self::access::{AccessArgs, Token};
pub(crate) use self::ending::Ending;
pub(crate) use self::server::Server;
pub(crate) use self::signals::Signals;
pub(crate) use self::site::site;
