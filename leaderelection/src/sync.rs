//! The locks of the code whose interleavings are explored: the explorer puts its own in their place.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
