//! Lets resources refuse the requests of earlier leaders.
//!
//! Losing leadership cannot undo a request that has already been sent. A slow disk, a proxy or a frozen process may
//! delay the request until another leader works. Only the resource that receives such a request can refuse it. Every
//! term has a larger [fencing token](crate::Leadership::fencing_token) than all terms before it. The leader sends the
//! token with every request. The resource remembers the largest token that it has seen, and refuses smaller ones.
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
//! - **One step.** The check and the change that it protects are one atomic step. If a newer leader's request can come
//!   between them, the older leader's change is made although it is stale.
//! - **As durable as the data.** A fence that forgets its token when the resource restarts accepts every old leader.
//! - **Raise the fence before you trust what you read.** Until a new leader has sent its token, the old leader's
//!   requests pass. So if a new leader reads the resource and then acts elsewhere, it raises the fence before it reads:
//!   see [`FencedObject::claim`].

mod attempt;
mod envelope;
mod error;
#[cfg(feature = "tower")]
mod gate;
#[cfg(feature = "tower")]
mod layer;
mod memory;
mod object;
#[doc = include_str!("../../docs/fencing.md")]
pub mod recipes {}
mod retries;
mod stale;

pub use error::FencedError;
#[cfg(feature = "tower")]
pub use layer::{FENCING_TOKEN, FenceLayer, Fenced};
pub use memory::Fence;
pub use object::{FencedObject, FencedValue};
pub use stale::StaleToken;
