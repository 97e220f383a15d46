//! A model of processes that lead locks through sessions with an *arbitrary* policy, for exploring the safety kernel: the real
//! [`Lease::of_session`], [`Directory`] and [`LockTable`].
//!
//! Whatever a permit allows may happen at any moment, as in the model of one [lease](crate::kernel).
//!
//! [`Lease::of_session`]: leaderelection_protocol::lease::Lease::of_session
//! [`Directory`]: leaderelection_protocol::session::Directory
//! [`LockTable`]: leaderelection_protocol::session::LockTable

mod action;
mod beginnings;
mod canonical;
mod node;
mod possible;
mod proof;
mod settings;
mod setup;
mod step;
mod store;
mod tiny;
mod world;

pub use settings::{broken, larger, questions};
