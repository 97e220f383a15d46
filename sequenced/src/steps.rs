//! The calls of a [`SequencedStore`](super::SequencedStore) as machines: an answer goes in, and a request comes out.
//!
//! A machine performs no I/O, so a model checker explores every order of the requests of several processes. Its
//! interface may change in any release.

pub(super) mod layout;
mod poll;
mod write;

pub use layout::{Number, complete};
pub use poll::{Ask, Next, Place, Poll, PollError, Reported, Seen};
pub use write::{Write, WriteError};
