//! The safety kernel of `leaderelection`: the rules on which "at most one leader" and "fencing tokens grow" depend.
//!
//! Everything else is *policy*: how often a candidate reads, who goes first, how long it waits after an error. A policy may
//! use any permit of the kernel at any moment, and it cannot make a write or a term of its own. A bad policy makes elections
//! slow or expensive, and never unsafe.
//!
//! The kernel performs no I/O, reads no clock and draws no random number. It is an internal crate: depend on `leaderelection`,
//! which makes the promises of stability.

mod instant;
pub mod lease;
pub mod quorum;
pub mod record;
pub mod session;

pub use instant::LocalInstant;
