//! A deterministic simulation of members that lead many locks through sessions.
//!
//! Five nodes and fifty locks. Requests have the same faults as in the [simulation of a single
//! lock](crate::simulation), and nodes are frozen, cut off, crash, stop, and join again, with clocks of different rates.
//! Members have unequal timings at times, and operators change locks. Listings are slow, or tell no versions. In some runs
//! sessions tell each other of their writes, and liars tell of what they like.
//! The simulation drives the state machine itself, with simulated time: all choices come from one seed.
//!
//! An oracle that knows true time checks every promise during the run: see [`Property`](crate::simulation::Property).

mod balance;
mod driver;
mod judge;
mod node;
mod operator;
mod oracle;
mod said;
mod store;
mod trouble;
mod words;
mod world;

pub use oracle::Stats;
pub use world::Sessions;
