//! Rule 22: new timings while the candidate runs.

use std::sync::Arc;

use super::effect::Effect;
use super::input::Jitter;
use super::limits::Limits;
use super::machine::Election;
use super::phase::Phase;
use super::rules::Rules;
use crate::clock::LocalInstant;

impl Election {
    /// Takes new timings. Shorter times count at once, because the next write may land without an answer. Longer times
    /// count once a write has landed that was sent with them.
    pub(super) fn take_rules(&mut self, now: LocalInstant, rules: Arc<Rules>, jitter: Jitter) {
        let before = std::mem::replace(&mut self.rules, rules);
        if before.pace() == self.rules.pace() {
            // Other settings count from the next write on.
            return;
        }
        self.shadow.take_rules(&self.rules);
        let limits = Limits::from(&*self.rules);
        if let Phase::Won { hold, .. } | Phase::Leading(hold) = &mut self.phase {
            hold.limits = hold.limits.min(limits);
        }
        self.expire(now);
        match &self.phase {
            Phase::Leading(hold) => self.effects.push_back(Effect::Extend(self.term(hold))),
            Phase::Following => self.pacing.look_by(now + self.rules.poll_pause(jitter)),
            _ => {}
        }
    }
}
