//! Helpers that know nothing about elections.

pub mod causes;
pub(crate) mod duration;
pub(crate) mod last_resort;
pub mod names;
pub(crate) mod random;
#[cfg(feature = "signal")]
pub mod shutdown;
pub(crate) mod stop;
pub(crate) mod sync;
