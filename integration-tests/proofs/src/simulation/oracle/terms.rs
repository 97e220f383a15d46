//! The checks of terms of leadership, as the process sees them: exclusion, no revival, no spurious loss.
//!
//! Windows are compared exactly, not sampled. A window opens, or its end moves, only when its elector was just
//! polled. Two windows overlap if and only if one is open when the other opens or moves. The process's own
//! `Leadership`, which reads the process's own clock, tells whether a window is open.

use std::time::Duration;

use leaderelection::Leadership;

use super::process::OpenTerm;
use super::{Oracle, Property};
use crate::simulation::clock::TrueTime;
use crate::simulation::scenario::Timings;
use crate::simulation::timeline::{Event, ProcessId};

/// The greatest delay of a timer, for every wait.
pub(super) const GRAIN: Duration = Duration::from_millis(5);

impl Oracle {
    /// Checks a process whose leadership may just have changed.
    pub(in crate::simulation) fn look(&mut self, now: TrueTime, process: ProcessId) {
        let watched = &mut self.processes[process];
        let leadership = watched.handle.leadership();
        match (&watched.open, leadership) {
            (None, None) => {}
            (None, Some(leadership)) => self.opened(now, process, leadership),
            (Some(open), Some(leadership)) if open.leadership.fencing_token() == leadership.fencing_token() => {
                self.look_at_window(now, process);
            }
            (Some(_), Some(leadership)) => {
                self.closed(now, process);
                self.opened(now, process, leadership);
            }
            (Some(_), None) => self.closed(now, process),
        }
        self.check_names_itself_only_in_term(now, process);
    }

    /// Checks the end of a window that may just have moved. Time can pass within a step, so this look comes before time
    /// passes there, too.
    pub(in crate::simulation) fn look_at_window(&mut self, now: TrueTime, process: ProcessId) {
        let watched = &mut self.processes[process];
        let Some(open) = &mut watched.open else { return };
        let (before, after) = (open.valid_until, open.leadership.valid_until());
        if before == after {
            return;
        }
        open.valid_until = after;
        if watched.clock.local_at(now) >= before {
            let what = format!("p{process}'s window was over, and was opened again by a renewal");
            self.violated(now, Property::NoRevival, what);
        }
        self.check_window(now, process);
        self.check_exclusion(now, process);
    }

    fn check_names_itself_only_in_term(&mut self, now: TrueTime, process: ProcessId) {
        let watched = &self.processes[process];
        let status = watched.handle.status();
        if !status.is_leader() && status.leader.as_ref() == Some(&watched.identity) {
            let what = format!("p{process} names itself as the leader, and does not lead");
            self.violated(now, Property::NamesItselfOnlyInTerm, what);
        }
    }

    fn opened(&mut self, now: TrueTime, process: ProcessId, leadership: Leadership) {
        let token = leadership.fencing_token();
        self.stats.terms += 1;
        let watched = &mut self.processes[process];
        let valid_until = leadership.valid_until();
        let until = watched.clock.true_at(valid_until);
        let is_revived = watched.past.iter().any(|past| past.is_valid() || past.fencing_token() == token);
        watched.open = Some(OpenTerm { leadership, valid_until, given_up: false });
        self.log(now, Some(process), Event::Leads { token, until });
        if is_revived {
            self.violated(now, Property::NoRevival, format!("p{process}'s ended term {token} is valid again"));
        }
        if !self.object.has_begun(process, token) {
            let what = format!("p{process} leads with token {token}, which it never wrote");
            self.violated(now, Property::Tokens, what);
        }
        self.note_leader_of_both();
        self.check_window(now, process);
        self.check_exclusion(now, process);
    }

    /// Checks that the window is no longer than a write that has landed allows.
    fn check_window(&mut self, now: TrueTime, process: ProcessId) {
        let watched = &self.processes[process];
        let Some(OpenTerm { leadership, valid_until, .. }) = &watched.open else { return };
        let token = leadership.fencing_token();
        let landed = watched.landed.filter(|landed| landed.token == token);
        if landed.is_none_or(|landed| *valid_until > landed.sent + landed.deadline) {
            let what =
                format!("p{process}'s window with token {token} is longer than its last write that landed allows");
            self.violated(now, Property::WindowOfALandedWrite, what);
        }
    }

    fn check_exclusion(&mut self, now: TrueTime, process: ProcessId) {
        if !self.scenario.clocks_bounded {
            return;
        }
        let is_deposed = |open: &OpenTerm| Some(open.leadership.fencing_token()) <= self.deposed;
        if self.processes[process].open.as_ref().is_some_and(is_deposed) {
            return;
        }
        let other = self.live_but(process).find_map(|(other, watched)| {
            let open = watched.open.as_ref().filter(|open| open.leadership.is_valid() && !is_deposed(open))?;
            Some((other, open.leadership.fencing_token(), watched.clock.true_at(open.leadership.valid_until())))
        });
        if let Some((other, token, until)) = other {
            let what = format!(
                "p{process} leads while p{other} leads with token {token}, until {:.3}s by its clock",
                until.as_secs_f64()
            );
            self.violated(now, Property::Exclusion, what);
        }
    }

    fn closed(&mut self, now: TrueTime, process: ProcessId) {
        let watched = &mut self.processes[process];
        let Some(OpenTerm { leadership, valid_until, given_up }) = watched.open.take() else { return };
        let token = leadership.fencing_token();
        let still_valid = leadership.is_valid();
        let in_time = watched.clock.local_at(now) < valid_until;
        let asked = self.object.asks_for_another() && self.object.is_held_by(process, token);
        let (given_up, watched) = (given_up || watched.cancelled || asked, &self.processes[process]);
        let longest = self.scenario.longest(|timings| timings.deadline);
        let since = valid_until - if self.scenario.reconfigures { longest } else { watched.timings.deadline };
        let was_spoilt = self.object.was_spoilt_since(watched.clock.true_at(since));
        let spurious = if given_up || was_spoilt {
            None
        } else if in_time {
            self.stats.losses += 1;
            // A false answer may end a term, which is safe. No false answer may prolong one.
            // A shorter deadline ends a term whose last renewal is older.
            let excused = !self.object.is_held_by(process, token)
                || watched.was_deceived_since(since)
                || watched.reconfigured_at.is_some_and(|at| at >= since);
            (!excused).then(|| "was given up, but the record is still its own".to_owned())
        } else {
            self.stats.deadlines += 1;
            let (wrong, told_to_wait) = watched.trouble_since(since);
            let excused = told_to_wait
                || watched.reconfigured_at.is_some_and(|at| at >= since)
                || watched.was_frozen_since(since)
                || longest_renewal(&watched.timings, wrong) > watched.timings.deadline;
            (!excused).then(|| format!("ran into its deadline, with {wrong} requests that went wrong"))
        };
        self.processes[process].past.push(leadership);
        self.last_led = now;
        self.settles_anew(now, process);
        self.log(now, Some(process), Event::LeadsNoMore { token });
        self.check_stop_before_next_leader(now, process);
        if still_valid {
            let what = format!("p{process}'s handle says that term {token} is over, its Leadership that it is valid");
            self.violated(now, Property::EndsAtOnce, what);
        }
        if let Some(how) = spurious {
            self.violated(now, Property::NoSpuriousLoss, format!("p{process}'s term {token} {how}"));
        }
    }

    /// Records that the process itself is about to end its term, if it has one.
    pub(in crate::simulation) fn gives_up(&mut self, process: ProcessId) {
        if let Some(open) = &mut self.processes[process].open {
            open.given_up = true;
        }
    }

    pub(in crate::simulation) fn cancelled(&mut self, now: TrueTime, process: ProcessId) {
        self.processes[process].cancelled = true;
        self.log(now, Some(process), Event::CancelCalled);
    }

    pub(in crate::simulation) fn stepped_down(&mut self, now: TrueTime, process: ProcessId, led: bool) {
        self.log(now, Some(process), Event::StepDownCalled { led });
        if self.processes[process].handle.is_leader() {
            self.violated(now, Property::EndsAtOnce, format!("p{process} leads after it stepped down"));
        }
        self.look(now, process);
    }

    pub(in crate::simulation) fn handed_over(&mut self, now: TrueTime, process: ProcessId, to: String, led: bool) {
        self.log(now, Some(process), Event::TransferCalled { to, led });
        if led {
            let watched = &mut self.processes[process];
            watched.gave_way = watched.landed.map(|landed| (landed.token, now));
        }
        if led && self.processes[process].handle.is_leader() {
            self.violated(now, Property::EndsAtOnce, format!("p{process} leads after it has handed over"));
        }
        self.look(now, process);
    }

    pub(in crate::simulation) fn check_has_leader(&mut self, now: TrueTime) {
        let leads = |process: &ProcessId| {
            let open = self.processes[*process].open.as_ref();
            open.is_some_and(|open| open.leadership.is_valid())
        };
        let bound = self.scenario.longest_without_leader();
        // A leader obeys an operator who insists on another leader, and a better candidate.
        let may_hand_over = self.scenario.operator_insists || self.scenario.has_ranks;
        let is_between_terms = may_hand_over && now < self.last_led + bound;
        let nobody_has_to = self.live.iter().all(|process| self.is_idle(now, *process));
        if !self.live.iter().any(leads) && !is_between_terms && !nobody_has_to {
            let what = format!("nobody leads, though nothing went wrong for more than {bound:?}");
            self.violated(now, Property::LeaderInTime, what);
        }
    }
}

/// Returns the longest time from one successful send of a leader to the next, with this number of failed
/// requests.
///
/// A failed request costs a timeout. The read that finds out the result of that request costs another. Each of
/// the two is followed by a pause, which is 100 ms at first, doubles, and never exceeds the retry period.
fn longest_renewal(timings: &Timings, wrong: u32) -> Duration {
    let Timings { retry, timeout, .. } = *timings;
    let pauses: Duration =
        (0..2 * wrong).map(|n| Duration::from_millis(100).saturating_mul(1 << n.min(20)).min(retry)).sum();
    retry + timeout * (2 * wrong + 1) + pauses + GRAIN * (4 * wrong + 2)
}
