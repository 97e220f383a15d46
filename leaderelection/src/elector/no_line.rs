//! The counterpart of `line.rs` in a build without peers.

use crate::clock::LocalInstant;
use crate::election::{Election, Heard};
use crate::leadership::Leadership;

#[derive(Debug, Default)]
pub(super) struct Line(());

impl Line {
    pub(super) async fn next_word(&self) -> Heard {
        std::future::pending().await
    }

    pub(super) fn reading(&self, _: LocalInstant, _: &Election) {}

    pub(super) fn heard(&self) {}

    pub(super) fn observed(&self, _: &Election) {}

    pub(super) fn landed(&self, _: &Leadership, _: &Election) {}

    pub(super) fn released(&self, _: &Election) {}

    pub(super) fn quiet(&self) {}
}
