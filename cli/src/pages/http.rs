//! Pages and answers over HTTP: the socket, access control, TLS, and the thread of the servers.

mod access;
mod ending;
mod host;
mod server;
mod signals;
mod site;
#[cfg(unix)]
mod socket;
pub(crate) mod thread;
mod tls;
mod token;

pub(crate) use self::access::{AccessArgs, Addresses, DEFAULT, addresses};
pub(crate) use self::ending::Ending;
pub(crate) use self::host::{HostArgs, Hosts};
pub(crate) use self::server::{Running, Server};
pub(crate) use self::site::{framed, site};
pub(crate) use self::token::Token;
#[cfg(feature = "lease-api")]
pub(crate) use self::token::{Scope, shown_in};
