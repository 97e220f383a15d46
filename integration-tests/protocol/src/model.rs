//! A model of candidates that share one object, for exploring the real [`Election`] state machine.
//!
//! Time is a number of small steps. In each step every node's clock advances by its own rate, so that
//! clocks drift apart as far as the rates allow. Nothing forces a node to act when it could: a pause of
//! any length is a path like any other. A clock's reading is never part of a state; only how long ago
//! something happened is, and only as far as it matters. So time is unbounded, and the number of states
//! is not.
//!
//! [`Election`]: leaderelection::election::Election

mod canonical;
mod node;
mod reachability;
mod settings;
mod step;
mod world;

pub use node::{Flight, Node, Work};
pub use reachability::{Reachability, Stuck, explore};
pub use settings::{Question, electable, electable_larger, larger, standard};
pub use step::{Action, Deed};
pub use world::{Cell, Manner, Setup, Violation, World};
