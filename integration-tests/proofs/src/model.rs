//! A model of candidates that share one object, for exploring the real [`Election`] state machine.
//!
//! Time is a number of small steps. In each step every node's clock advances by its own rate, so that
//! clocks drift apart as far as the rates allow. A node that can act need not act, so a pause of any length is
//! explored too. The reading of a clock is never part of a state. A state contains the ages of past events, and
//! only as far as they matter. Time is therefore unbounded, and the number of states is finite.
//!
//! [`Election`]: leaderelection::election::Election

mod action;
mod canonical;
mod job;
mod node;
mod peer;
mod promise;
mod proof;
mod settings;
mod setup;
mod step;
mod store;
mod world;

pub(crate) use promise::Violation;
pub use settings::{larger, questions};
pub use setup::{A, B, Setup, StoreClock};
