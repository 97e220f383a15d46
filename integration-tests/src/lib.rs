//! Servers for the tests of the leaderelection crates.

// This crate is test code: a harness that cannot go on fails the test with what it has to say.
#![allow(clippy::expect_used, clippy::unwrap_used)]

pub mod servers;
