//! A model of candidates for one lease in several objects with an *arbitrary* policy, for exploring the safety kernel: the real
//! [`Lease`] over the real [`Quorum`].
//!
//! Whatever a permit or a plan allows may happen at any moment, in any order: a poll of any parts, a put of a plan, its loss, the
//! end of a write that is whole or not. So no promise that holds here depends on a policy, of today or to come.
//!
//! [`Lease`]: leaderelection_protocol::lease::Lease
//! [`Quorum`]: leaderelection_protocol::quorum::Quorum

mod action;
mod beginnings;
mod canonical;
mod half;
mod possible;
mod proof;
mod settings;
mod setup;
mod step;
mod world;

pub use settings::{broken, larger, questions};
