//! A model of processes that lead locks through sessions, for exploring the real [`Member`] state machine.
//!
//! Time, ages and pauses are treated as in the [model of a single lock](crate::model): time is unbounded, and a state
//! contains only the ages of past events. The numbers of sessions and of terms are bounded.
//!
//! [`Member`]: leaderelection::session::Member

mod canonical;
mod node;
mod settings;
mod step;
mod store;
mod world;

pub use node::Target;
pub use settings::{Question, electable, larger, standard};
pub use step::{Action, Deed};
pub use world::{Setup, Slow, TICK, Violation, World};
