//! The sockets on which a process answers: one budget for all connections, and the limits of each connection.
//!
//! The servers of `leaderelect` use the budget together with the server for peers. This module is no part of the interface
//! that versions keep.

mod connections;
mod gate;
mod listener;
mod permit;
mod serving;
mod write_timeout;

pub use connections::Connections;
pub use listener::Socket;
pub use serving::Serving;
