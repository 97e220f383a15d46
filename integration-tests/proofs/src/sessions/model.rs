//! A model of processes that lead locks through sessions, for exploring the real [`Member`] state machine.
//!
//! Time, ages and pauses are treated as in the [model of a single lock](crate::model): time is unbounded, and a state
//! contains only the ages of past events. The numbers of sessions and of terms are bounded.
//!
//! [`Member`]: leaderelection::sessions::machine::Member

mod canonical;
mod message;
mod node;
mod proof;
mod settings;
mod setup;
mod step;
mod world;

pub use settings::{larger, questions};
