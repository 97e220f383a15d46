//! Shows an election to an explorer, which can then tell that two states differ in nothing that matters.

use std::sync::Arc;

use super::machine::Election;
use super::phase::{Hold, InFlight, Phase};
use super::visitor::{Visitor, visit_record};

impl Election {
    /// Shows everything to `visitor`.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        self.pacing.visit(visitor);
        if let Some(sight) = &mut self.sight {
            visitor.timer(&mut sight.lease_until);
            if let Some(courtesy_until) = &mut sight.courtesy_until {
                visitor.timer(courtesy_until);
            }
            if let Some(found) = &mut sight.found {
                visitor.version(&mut found.version);
                visit_record(Arc::make_mut(&mut found.record), visitor);
            }
        }
        if let Some(hearing) = &mut self.hearing {
            hearing.visit(visitor);
        }
        match &mut self.phase {
            Phase::Idle | Phase::Following => {}
            Phase::Won { hold, .. } | Phase::Leading(hold) => visit_hold(hold, visitor),
            Phase::Stopping { held, until: timer, .. } | Phase::Releasing { held, give_up_at: timer, .. } => {
                visitor.timer(timer);
                if let Some(hold) = held {
                    visit_hold(hold, visitor);
                }
            }
        }
        self.attempts.visit(visitor);
        if let Some(InFlight::Write { attempt, record }) = &mut self.in_flight {
            visitor.moment(&mut attempt.sent_at);
            visit_record(Arc::make_mut(record), visitor);
        }
    }
}

fn visit_hold(hold: &mut Hold, visitor: &mut impl Visitor) {
    visitor.moment(&mut hold.sent_at);
    visitor.version(&mut hold.seen.version);
    visit_record(Arc::make_mut(&mut hold.seen.record), visitor);
}
