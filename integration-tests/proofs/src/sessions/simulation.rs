//! A deterministic simulation of members that lead many locks through sessions.
//!
//! Five nodes and fifty locks. Requests have the same faults as in the [simulation of a single
//! lock](crate::simulation), and nodes are frozen, cut off, crash, stop, and join again, with clocks of different rates.
//! Members have unequal timings at times, and operators change locks. Listings are slow, tell no versions, or spell them in a
//! way of their own. In some runs sessions tell each other of their writes, and liars tell of what they like. In one run in five,
//! nothing goes wrong but one planned change after the other, so that each time without a leader has one cause.
//! The simulation drives the state machine itself, with simulated time: all choices come from one seed.
//!
//! An oracle that knows true time checks every promise during the run: see [`Property`](crate::simulation::Property).

mod balance;
mod drill;
mod drills;
mod driver;
mod gap;
mod judge;
mod messages;
mod node;
mod operator;
mod oracle;
mod store;
mod trouble;
mod world;

pub use oracle::Stats;
pub use world::Sessions;
