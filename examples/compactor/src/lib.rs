//! The table of the program `compactor`.

#[cfg(feature = "object-store")]
pub mod table;
