//! The protocol against every history, and against many of the real elector.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Display;
use std::io::{Write, stderr};

mod costs;
mod migration;
mod model;
mod sequenced;
mod sessions;
mod simulation;

/// Says what a test has explored. What `println` prints in a test that passes is kept from the reader.
fn report(figures: impl Display) {
    stderr().write_all(format!("{figures}\n").as_bytes()).expect("somebody to read what was explored");
}
