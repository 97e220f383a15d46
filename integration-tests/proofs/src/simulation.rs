//! A deterministic simulation of the real elector.
//!
//! Five candidates compete for one object under many faults. Requests are lost, delayed, applied twice, applied
//! after the death of their sender, or answered falsely. Nodes are frozen, cut off, crash and restart, and
//! their clocks have different rates. Work and callbacks misbehave. A day takes a second, because time passes
//! only while every task waits. All choices come from one seed, so every seed has exactly one history.
//!
//! The same candidates compete for a sequenced lock: every request of a call then has a fate of its own, and somebody removes
//! old objects as soon as there are any.
//!
//! An oracle that knows true time checks every promise during the run: see [`Property`].

mod carry;
pub(crate) mod clock;
pub(crate) mod dice;
pub(crate) mod faults;
mod gate;
mod hostile;
mod job;
mod listener;
mod names;
mod node;
mod object;
mod operator;
mod oracle;
mod peers;
mod run;
pub(crate) mod scenario;
mod sequenced;
mod store;
mod stranger;
pub(crate) mod timings;
mod two_locks;
mod vandal;
mod work;
mod world;

pub use oracle::{Property, Stats};
pub use scenario::Layout;
