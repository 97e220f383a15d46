//! Locks in stores that can create an object if it is absent, and can replace none on a condition.
//!
//! Every write is an object of its own: `KEY/` and a number of 20 digits. [`SequencedStore`] makes a
//! [`ConditionalStore`](crate::ConditionalStore) of a [`CreateOnlyStore`], whose version is that number.

mod memory;
mod store;

pub use memory::{MemoryCreateOnlyStore, Request};
pub use store::{Content, CreateOnlyStore, Entry, MAX_CONTENT_BYTES};
