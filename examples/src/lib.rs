//! The common code of the example programs.

pub mod lead;
pub mod timing;

pub use leaderelection_arena::{logs, shutdown};

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
