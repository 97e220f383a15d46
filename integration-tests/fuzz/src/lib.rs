//! Targets for a fuzzer: everything that reads the bytes of others.
//!
//! A target takes any bytes, and panics if a promise is broken: nothing panics, and what is read and written again is the same.
//! [`Target::check`] adds that the memory of this project's code is bounded by the input. The tests damage the files of `corpus`
//! for seconds, and the program `run` beside this crate lets libFuzzer do so for hours. An input that broke a promise joins the
//! corpus.
#![cfg(feature = "check")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a broken promise is a panic")]

mod borders;
mod corpus;
mod damage;
mod runtime;
mod target;
mod targets;

pub use borders::at_the_border;
pub use corpus::corpus;
pub use damage::inputs;
pub use target::Target;
pub use targets::TARGETS;
