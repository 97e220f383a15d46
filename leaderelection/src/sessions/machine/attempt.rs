//! Single attempts to lead a lock: candidacies that wait for nothing but answers.

use super::LockId;
use super::input::Input;
use super::lock::Phase;
use super::member::Member;
use crate::clock::LocalInstant;
use crate::election::Command;

impl Member {
    /// Ends each attempt that would have to wait for something else than an answer. While the session is not open, no
    /// attempt ends, unless the session cannot be opened now (`fails_to_open`).
    pub(super) fn end_attempts(&mut self, now: LocalInstant, fails_to_open: bool) {
        if self.attempts.is_empty() || self.window().is_none() && !fails_to_open {
            return;
        }
        for lock in self.attempts.clone() {
            let id = LockId(lock);
            // A due request only waits for the answers to others. But no attempt waits for the end of a pause that the
            // store asked for.
            let is_due = now >= self.asked_until && self.due_locks.at(&lock).is_some_and(|at| at <= now);
            let competes = self.lock(id).is_some_and(|lock| lock.phase == Phase::Competing);
            if competes && !is_due && !self.table.is_busy(lock) {
                // This also releases the lock if one of the attempt's writes may have won it.
                self.on_command(now, id, Command::Stop);
            }
        }
    }

    /// Returns `true` if this input shows that the session cannot be opened now.
    pub(super) fn fails_to_open(&self, input: &Input) -> bool {
        let fails = match input {
            Input::Own { answer, .. } => answer.failure().is_some(),
            Input::Sessions(page) => page.is_err(),
            _ => false,
        };
        fails && self.window().is_none()
    }
}
