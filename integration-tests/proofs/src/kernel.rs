//! A model of candidates with an *arbitrary* policy, for exploring the safety kernel, the real [`Lease`].
//!
//! Whatever a permit allows may happen at any moment: a read, a write, the end of a term, a stop. So no promise that holds here
//! depends on a policy, of today or to come. What a policy can break, such as that somebody leads in the end, is a question for
//! the model of [`Election`].
//!
//! [`Lease`]: leaderelection_protocol::lease::Lease
//! [`Election`]: leaderelection::election::Election

mod action;
mod canonical;
mod proof;
mod settings;
mod setup;
mod step;
mod store;
mod tiny;
mod world;

pub use settings::{larger, questions};
pub use tiny::Id;
pub(crate) use tiny::TheJob;
