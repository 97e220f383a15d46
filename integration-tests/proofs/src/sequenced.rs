//! A model of processes that share one lock in a store that can only create, for exploring the real steps of
//! `SequencedStore`.
//!
//! The requests of all processes interleave in every order. A process may stall before any request, and crash between
//! any two. A creation or a removal may arrive when its sender no longer waits. The model asks whether the calls keep the
//! contract of `ConditionalStore`, and whether the object with the highest number stays.

mod action;
mod proof;
mod setup;
mod world;

pub use setup::{larger, questions};
