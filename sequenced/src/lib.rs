//! Locks in stores that can create an object if it is absent, and can replace none on a condition.
//!
//! [`SequencedStore`] makes a [`ConditionalStore`](leaderelection::implement::ConditionalStore) of a
//! [`CreateOnlyStore`]. Every write is an object of its own, and the object with the highest number counts:
//!
//! ```text
//! locks/scheduler/00000000000000000041      the version before
//! locks/scheduler/00000000000000000042      the object locks/scheduler, at version 42
//! ```
//!
//! A line feed follows each body, so that an object that is only half there is never taken for a whole one. A deleted
//! object has a number whose body is empty. [`protocol`](leaderelection::protocol) has the rules of this layout, and the page
//! `correctness.md` of the repository the argument for them.
//!
//! # Costs
//!
//! | call | requests |
//! |---|---|
//! | a write on the version that this process has written or listed last | one creation, one listing, one removal |
//! | a write on any other version | one listing more, and a read and a second listing if that is needed to know the version |
//! | a read that finds nothing new | two reads; every tenth time one read and one listing |
//! | a read that finds `n` new writes, up to four | `n + 1` reads and one listing |
//! | the first read, and one after more writes | two listings, and the reads |

mod conditional;
mod memory;
#[cfg(feature = "unstable-steps")]
pub mod steps;
#[cfg(not(feature = "unstable-steps"))]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "explorers of the protocol use more of it than the store")]
mod steps;
mod store;

pub use conditional::{DEFAULT_KEEP, SequencedStore};
pub use memory::{MemoryCreateOnlyStore, Request};
pub use store::{Content, CreateOnlyStore, Entry, MAX_CONTENT_BYTES};
