//! The counterpart of `meters.rs` in a build without metrics.

use std::sync::Arc;

use super::listeners::Listeners;
use super::request::{Answered, Asked};
use crate::clock::LocalInstant;
use crate::election::{EndReason, Fact, Operation};

#[derive(Debug)]
pub(super) struct Meters {
    pub(super) listeners: Arc<dyn Listeners>,
}

impl Meters {
    pub(super) fn new(listeners: Arc<dyn Listeners>) -> Self {
        Self { listeners }
    }

    pub(super) fn sent(&self, _operation: Operation) {}

    pub(super) fn answered(&mut self, _now: LocalInstant, _: Asked, _: Answered) {}

    pub(super) fn fact(&mut self, _fact: &Fact) {}

    pub(super) fn overrun(&self) {}

    pub(super) fn identity_clash(&self) {}

    pub(super) fn term_started(&mut self) {}

    pub(super) fn term_ended(&mut self, _reason: &EndReason) {}
}

#[cfg(feature = "sessions")]
#[derive(Debug)]
pub(super) struct SessionMeters;

#[cfg(feature = "sessions")]
impl SessionMeters {
    pub(super) fn new(_name: &str) -> Self {
        Self
    }

    pub(super) fn leads(&self, _locks: usize) {}

    pub(super) fn sees(&self, _sessions: usize) {}

    pub(super) fn took_over(&self) {}

    pub(super) fn identity_clash(&self) {}

    pub(super) fn fact(&mut self, _fact: &Fact) {}

    pub(super) fn answered(&mut self, _: Operation, _: Answered) {}

    pub(super) fn answered_own(&mut self, _now: LocalInstant, _: Asked, _: Answered) {}
}
