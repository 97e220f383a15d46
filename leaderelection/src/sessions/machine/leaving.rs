//! Rule S6: a member ends its session when the others will soon notice.
//!
//! The end of a session frees all its locks at once. The others need time to notice that, and one request for each lock.

use super::LockId;
use super::balance::BEFORE_RENEWAL;
use super::hand_over::Leaving;
use super::input::SessionEntropy;
use super::member::Member;
use crate::clock::LocalInstant;
use crate::election::{Command, Input};

/// The locks released at a time are at most 1/4 of the limit of requests in flight: others have to read and write each.
const SHARE: usize = 4;

impl Member {
    /// Ends the session at once, or plans its end so that the locks are without a leader for a shorter time.
    pub(super) fn stop(&mut self, now: LocalInstant, draw: &mut impl SessionEntropy) {
        self.stop_asked = true;
        if self.own.is_none() {
            return self.end(now);
        }
        let works = self.own.as_ref().is_some_and(|own| self.table.works_for(&own.id));
        let is_noticed_soon = self.rules.balance && works && self.sessions() > 1 && !self.lists_instead_of_reading();
        let rules = &self.rules.election;
        self.leaving = self.window().filter(|_| is_noticed_soon).map(|window| match self.silent_members() {
            // Messages report each release at once.
            0 => Leaving { until: now + rules.release_patience, next: Some(0) },
            // The others poll a session when its renewal is due (rule S8).
            _ => {
                Leaving { until: window.sent_at + rules.retry_period - rules.retry_period / BEFORE_RENEWAL, next: None }
            }
        });
        if self.leaving.is_none() {
            self.step_own(now, Input::Command(Command::Stop), draw);
        }
    }

    /// Releases the next locks, or ends the session.
    pub(super) fn leave(&mut self, now: LocalInstant, draw: &mut impl SessionEntropy) {
        let Some(Leaving { until, next }) = self.leaving.clone() else { return };
        let mut rest = next.map_or(0, |next| next as usize)..self.locks.len();
        while next.is_some() && self.ending_deadlines.len() < (self.in_flight_limit / SHARE).max(1) {
            let Some(index) = rest.next() else { break };
            if self.locks[index].leads() {
                self.stop_elector(now, LockId::of(index));
            }
        }
        let is_done = rest.is_empty() && self.ending_deadlines.len() == 0;
        if now >= until || is_done || self.window().is_none() {
            self.leaving = None;
            self.step_own(now, Input::Command(Command::Stop), draw);
        } else {
            self.leaving = Some(Leaving { until, next: next.map(|_| LockId::of(rest.start).0) });
        }
    }
}
