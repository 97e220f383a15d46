//! Resources that refuse earlier leaders.
//!
//! Losing leadership cannot undo a request that has already been sent. A slow disk, a proxy or a frozen process
//! may delay the request until another leader works. The resource that receives the request can refuse it.
//! Every term has a [fencing token](crate::Leadership::fencing_token) that is larger than those of all terms
//! won before. The leader sends the token with every request. The resource keeps the largest token that it has
//! seen and refuses smaller ones.
//!
//! | the resource | the fence |
//! |---|---|
//! | a process: a server, an actor, a device's driver | [`Fence`] |
//! | an HTTP service in one process | `FenceLayer`, with the feature `tower` |
//! | one object of an object store | [`FencedObject`] |
//! | many objects of an object store, a SQL database | the [recipes] |
//!
//! Three rules hold for every fence:
//!
//! - **One step.** The check and the change that it protects are one atomic step. If a newer leader can come between
//!   them, the older leader's change is still committed after the newer leader's.
//! - **As durable as the data.** A fence that forgets its token when the resource restarts lets every old leader in.
//! - **Raise the fence before you trust what you read.** Until a new leader has shown its token, the old leader's
//!   requests pass. A new leader that acts elsewhere on what it reads in the resource raises the fence first, and
//!   reads afterwards: see [`FencedObject::claim`].

mod attempt;
mod envelope;
mod error;
#[cfg(feature = "tower")]
mod gate;
#[cfg(feature = "tower")]
mod layer;
mod memory;
mod object;
mod patience;
#[doc = include_str!("../../docs/fencing.md")]
pub mod recipes {}
mod stale;

pub use error::FencedError;
#[cfg(feature = "tower")]
pub use layer::{FENCING_TOKEN, FenceLayer, Fenced};
pub use memory::Fence;
pub use object::{FencedObject, FencedValue};
pub use stale::StaleToken;
