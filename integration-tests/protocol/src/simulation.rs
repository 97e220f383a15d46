//! A deterministic simulation of the real elector.
//!
//! Five candidates compete for one object while nearly everything goes wrong: requests are lost, delayed,
//! applied twice or after their sender has died, answered with lies; nodes are frozen, cut off, crash and
//! come back, with clocks of different rates; work and callbacks misbehave. A day takes a second, because
//! time passes only when everybody waits. All choices come from one seed, so that a seed has one history.
//!
//! An oracle that knows true time checks every promise while this goes on: see [`Property`].

mod campaign;
mod clock;
mod dice;
mod faults;
mod gate;
mod listener;
mod node;
mod oracle;
mod run;
mod scenario;
mod store;
mod timeline;
mod work;
mod world;

pub use campaign::{Campaign, Outcome};
pub use oracle::{Property, Stats, Violation};
pub use run::{RUN_LENGTH, Run, run};
