//! The counterpart of `meters.rs` in a build without metrics.

use std::sync::Arc;

use super::listeners::Listeners;
use super::request::{Answered, Asked};
use crate::clock::LocalInstant;
use crate::election::{Fact, Operation, TermEndReason};

#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) listeners: Arc<dyn Listeners>,
}

impl Meters {
    pub(crate) fn new(listeners: Arc<dyn Listeners>) -> Self {
        Self { listeners }
    }

    pub(crate) fn sent(&self, _operation: Operation) {}

    pub(crate) fn answered(&mut self, _now: LocalInstant, _: &Asked, _: Answered) {}

    pub(crate) fn fact(&mut self, _fact: &Fact) {}

    pub(crate) fn overrun(&self) {}

    pub(crate) fn duplicate_identity(&self) {}

    pub(crate) fn left_out(&mut self, _parts: Option<usize>) {}

    pub(crate) fn term_started(&mut self) {}

    pub(crate) fn term_ended(&mut self, _reason: &TermEndReason) {}
}

#[cfg(feature = "sessions")]
#[derive(Debug)]
pub(crate) struct SessionMeters;

#[cfg(feature = "sessions")]
impl SessionMeters {
    pub(crate) fn new(_name: &str) -> Self {
        Self
    }

    pub(crate) fn leads(&self, _locks: usize) {}

    pub(crate) fn sees(&self, _sessions: usize) {}

    pub(crate) fn works(&self, _taking: usize, _handing_over: usize, _waiting: usize) {}

    pub(crate) fn took_over(&self) {}

    pub(crate) fn duplicate_identity(&self) {}

    pub(crate) fn fact(&mut self, _fact: &Fact) {}

    pub(crate) fn answered(&mut self, _: Operation, _: Answered) {}

    pub(crate) fn answered_own(&mut self, _now: LocalInstant, _: &Asked, _: Answered) {}
}
