//! What the servers of the `leaderelection` crates share. A program needs none of it, and it may change in any release.

pub mod expiry;
pub mod secret;
pub mod sockets;
