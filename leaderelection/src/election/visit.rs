//! Shows an election to an explorer, which can then tell that two states differ in nothing that matters.

use std::time::Duration;

use super::machine::Election;
use super::phase::{Hold, InFlight, Phase};
use super::settling::Settling;
use super::visitor::Visitor;
use crate::clock::LocalInstant;

impl Election {
    /// Shows every instant to `visitor`, which may replace each.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        self.shadow.visit(visitor);
        self.pacing.visit(visitor);
        let rank_wait = self.rank_wait();
        if let Some(sight) = &mut self.sight {
            visit_wait(&mut sight.lease_until, rank_wait, visitor);
            if let Some(courtesy_until) = &mut sight.courtesy_until {
                visit_wait(courtesy_until, rank_wait, visitor);
            }
        }
        if let Settling::Since(since) = &mut self.settling {
            visitor.moment(since);
        }
        if let Some(hearing) = &mut self.hearing {
            hearing.visit(visitor);
        }
        match &mut self.phase {
            Phase::Idle | Phase::Following => {}
            Phase::Won { hold, .. } | Phase::Leading(hold) => visit_hold(hold, visitor),
            Phase::Ending { held, ending } => {
                ending.visit(|until| visitor.timer(until));
                if let Some(hold) = held {
                    visit_hold(hold, visitor);
                }
            }
        }
        self.attempts.visit(visitor);
        if let Some(InFlight::Write { attempt, .. }) = &mut self.in_flight {
            visitor.moment(&mut attempt.sent_at);
        }
    }
}

/// Shows a moment after which the candidate waits for the time of its rank. The timer fires when both have passed.
fn visit_wait(moment: &mut LocalInstant, rank_wait: Duration, visitor: &mut impl Visitor) {
    let mut timer = *moment + rank_wait;
    visitor.timer(&mut timer);
    *moment = timer - rank_wait;
}

fn visit_hold(hold: &mut Hold, visitor: &mut impl Visitor) {
    visitor.moment(&mut hold.sent_at);
    if let Some(forgets_at) = &mut hold.forgets_at {
        visitor.timer(forgets_at);
    }
}
