//! The protocol against every history, and against many of the real elector.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg_attr(
    not(feature = "all-tests"),
    allow(dead_code, unused_imports, reason = "some of it is for tests that take long")
)]

use std::fmt::Display;
use std::io::{Write, stderr};

use leaderelection_proofs::kit::{Explored, explore_all};
use leaderelection_proofs::models;

#[cfg(feature = "all-tests")]
mod costs;
mod gaps;
mod kit;
mod models;
mod simulation;

/// The states of each setup that are visited: all of them among all tests, and in `cargo test` those of the shortest histories.
/// A setup with more states than this would fill the memory of the machine: it belongs to the larger ones.
const MOST: usize = if cfg!(feature = "all-tests") { 3_000_000 } else { 10_000 };

/// Explores every history of each setup of a model. Fails with the shortest way to what should not be.
fn keeps_every_promise(model: &str) {
    let asked = models().into_iter().find(|asked| asked.model == model).expect("a model");
    let found = explore_all(asked.usual, 2, MOST, |found| report(format!("{model}, {found}")));
    let unwell = |found: &Explored| {
        let is_cut = cfg!(feature = "all-tests") && found.states >= MOST;
        (is_cut || !found.is_well())
            .then(|| format!("{found}{}", if is_cut { "\nhas more states than that" } else { "" }))
    };
    let bad: Vec<_> = found.iter().filter_map(unwell).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Says what a test has explored. What `println` prints in a test that passes is kept from the reader.
fn report(figures: impl Display) {
    stderr().write_all(format!("{figures}\n").as_bytes()).expect("somebody to read what was explored");
}
