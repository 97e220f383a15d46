//! The requests of a write: its parts, and their order.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::lock::record::LeaderElectionRecord;
use crate::store::{StoreErrorKind, Version};

use super::parts::{Parts, Place};
use super::view::View;

/// The write of one part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Put {
    /// The number of the part.
    pub part: usize,
    /// The record.
    pub record: Arc<LeaderElectionRecord>,
    /// The version that the write replaces; `None` if the write creates the object.
    pub expected: Option<Version>,
}

/// The requests of a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The writes, in order.
    pub puts: VecDeque<Put>,
    /// The parts to read when the write has landed, because their versions are not known.
    pub reads: Vec<usize>,
    /// `true` if a write is sent when the one before is answered, and `false` if all are sent at once.
    pub in_turn: bool,
}

/// The error of a version that is none of such a lock.
const FOREIGN: (StoreErrorKind, &str) = (StoreErrorKind::Conflict, "the version is none of this lock");

impl View {
    /// Returns the requests of a write that is about to be sent (M2, M6 and M10).
    ///
    /// # Errors
    ///
    /// `expected` is no version of such a lock, or the write asks the holder of parts that show no one write (M9).
    pub fn plan(
        &mut self,
        record: &LeaderElectionRecord,
        expected: Option<&Version>,
    ) -> Result<Plan, (StoreErrorKind, &'static str)> {
        self.writes(record);
        let shown = self.shown.as_ref().filter(|shown| expected == Some(&shown.version));
        // A request keeps the write id of each part, by which the holder knows the part for its own.
        if self.asks(record) && !shown.is_some_and(|shown| shown.is_one_write) {
            return Err((StoreErrorKind::Rejected, "its parts do not show one write yet; try again"));
        }
        let renews = shown.is_some_and(|shown| {
            !record.is_released()
                && (record.holder_identity == self.identity && shown.record.holder_identity == self.identity)
                && record.leader_transitions == shown.record.leader_transitions
        });
        let is_written = |part: usize, place: &Place| match place.counts {
            // A leader takes back every part that it can, and a candidate leaves to others what does not answer.
            true => renews || record.is_released() || self.looked.contains(&part),
            false => renews && place.is_behind(record.leader_transitions),
        };
        let parts = self.parts_in(record.leader_transitions);
        let put = |part: usize, place: &Place| {
            let mut record = LeaderElectionRecord { parts: Some(Arc::clone(&parts)), ..record.clone() };
            self.carried.iter().for_each(|carried| record.keep_unknown_of(carried));
            Put { part, record: Arc::new(record), expected: place.version.clone() }
        };
        let mut puts: VecDeque<Put> = match (shown, expected) {
            (Some(shown), _) => {
                let written = shown.parts.0.iter().filter(|(part, place)| is_written(**part, place));
                written.map(|(part, place)| put(*part, place)).collect()
            }
            (None, Some(version)) => {
                Parts::read(version).ok_or(FOREIGN)?.0.iter().map(|(part, place)| put(*part, place)).collect()
            }
            (None, None) => self.looked.iter().map(|part| put(*part, &Place::new(None, true))).collect(),
        };
        if record.is_released() {
            puts.make_contiguous().reverse();
        }
        let is_unknown = |part: &usize| renews && shown.is_some_and(|shown| !shown.parts.0.contains_key(part));
        Ok(Plan {
            puts,
            reads: (0..self.names.len()).filter(is_unknown).collect(),
            in_turn: self.quorum == self.names.len() || !(renews || record.is_released()),
        })
    }
}
