//! Lets an explorer tell that two states differ in nothing that matters.

use super::{Election, Hold, InFlight, Phase};
use crate::clock::LocalInstant;
use crate::record::LeaderElectionRecord;
use crate::store::Version;

/// Sees, and may replace, every name and every instant in an [`Election`], in a fixed order.
///
/// The protocol compares names for equality only, and instants only with *now* and each other. An
/// explorer can therefore rename ids in their order of appearance, and move all instants so that *now*
/// stays where it is, and finds itself in one of finitely many states.
pub trait Visitor {
    /// Before this instant something is not done. How long ago it has passed makes no difference.
    fn timer(&mut self, _timer: &mut LocalInstant) {}
    /// When something happened.
    fn moment(&mut self, _moment: &mut LocalInstant) {}
    /// The version of an object.
    fn version(&mut self, _version: &mut Version) {}
    /// The id of a write.
    fn write_id(&mut self, _write_id: &mut String) {}
    /// Whether to go on remembering an unanswered write. One that can neither land nor have landed may
    /// be forgotten: nothing will ever ask for it.
    fn may_land(&mut self, _write_id: &str) -> bool {
        true
    }
}

impl Election {
    /// Shows everything to `visitor`.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        visitor.timer(&mut self.hold_off);
        visitor.timer(&mut self.next_read);
        visitor.timer(&mut self.write_after);
        visitor.timer(&mut self.asked_until);
        if let Some(sight) = &mut self.sight {
            visitor.timer(&mut sight.free_at);
            if let Some(found) = &mut sight.found {
                visitor.version(&mut found.version);
                visit_record(&mut found.record, visitor);
            }
        }
        match &mut self.phase {
            Phase::Idle | Phase::Following => {}
            Phase::Holding(hold) => hold.visit(visitor),
            Phase::Stopping { held, stop_by: timer } | Phase::Releasing { held, give_up_at: timer } => {
                visitor.timer(timer);
                if let Some(hold) = held {
                    hold.visit(visitor);
                }
            }
        }
        self.attempts.visit(visitor);
        if let Some(InFlight::Write { attempt, record }) = &mut self.in_flight {
            visitor.write_id(&mut attempt.write_id);
            visitor.moment(&mut attempt.sent_at);
            visit_record(record, visitor);
        }
    }
}

impl Hold {
    fn visit(&mut self, visitor: &mut impl Visitor) {
        visitor.moment(&mut self.sent_at);
        visitor.version(&mut self.version);
        visit_record(&mut self.record, visitor);
    }
}

fn visit_record(record: &mut LeaderElectionRecord, visitor: &mut impl Visitor) {
    if let Some(write_id) = &mut record.write_id {
        visitor.write_id(write_id);
    }
}
