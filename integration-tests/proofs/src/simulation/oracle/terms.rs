//! The checks of terms of leadership, as the process sees them: exclusion, no revival, no spurious loss.
//!
//! Windows are compared exactly, not sampled. A window opens, or its end moves, only when its elector was just
//! polled. Two windows overlap if and only if one is open when the other opens or moves. The process's own
//! `Leadership`, which reads the process's own clock, tells whether a window is open.

use std::time::Duration;

use leaderelection::{Leadership, TermEndReason};

use super::knowledge::Oracle;
use super::process::{GRAIN, OpenTerm, Watched};
use super::property::Property;
use crate::simulation::names::ProcessId;
use crate::simulation::timings::Timings;

impl Oracle {
    /// Checks a process whose leadership may just have changed.
    pub(crate) fn check_term(&mut self, process: ProcessId) {
        let watched = &self.processes[process];
        let leadership = watched.handle.leadership();
        match (&watched.seen.open, leadership) {
            (None, None) => {}
            (None, Some(leadership)) => self.opened(process, leadership),
            (Some(open), Some(leadership)) if open.leadership.fencing_token() == leadership.fencing_token() => {
                self.observe_window(process);
            }
            (Some(_), Some(leadership)) => {
                self.closed(process);
                self.opened(process, leadership);
            }
            (Some(_), None) => self.closed(process),
        }
        let watched = &self.processes[process];
        let status = watched.handle.status();
        let is_named = status.leader.as_ref() == Some(&watched.identity);
        self.timeline.demand(status.is_leader() || !is_named, Property::NamesItselfOnlyInTerm, || {
            format!("p{process} names itself as the leader, and does not lead")
        });
    }

    /// Checks the end of a window that may just have moved. Time can pass within a step, so this observation comes before
    /// time passes there, too.
    pub(crate) fn observe_window(&mut self, process: ProcessId) {
        let Watched { is, seen } = &mut self.processes[process];
        let Some(open) = &mut seen.open else { return };
        let (before, after) = (open.valid_until, open.leadership.valid_until());
        if before == after {
            return;
        }
        open.valid_until = after;
        self.timeline.demand(is.clock.local_at(self.timeline.now) < before, Property::NoRevival, || {
            format!("p{process}'s window was over, and was opened again by a renewal")
        });
        self.check_window_length(process);
        self.check_exclusion(process);
    }

    fn opened(&mut self, process: ProcessId, leadership: Leadership) {
        let token = leadership.fencing_token();
        self.stats.terms += 1;
        let Watched { is, seen } = &mut self.processes[process];
        let valid_until = leadership.valid_until();
        let until = is.clock.true_at(valid_until).as_secs_f64();
        let is_revived = seen.past.iter().any(|past| past.is_valid() || past.fencing_token() == token);
        seen.open = Some(OpenTerm { leadership, valid_until, given_up: false });
        self.log(Some(process), || format!("LEADS with token {token} until {until:.3}s"));
        self.timeline
            .demand(!is_revived, Property::NoRevival, || format!("p{process}'s ended term {token} is valid again"));
        self.timeline.demand(self.object.has_begun(process, token.into()), Property::Tokens, || {
            format!("p{process} leads with token {token}, which it never wrote")
        });
        self.check_token_of_term(process, token.into());
        self.note_leader_of_both();
        self.check_window_length(process);
        self.check_exclusion(process);
    }

    /// Checks that the window is no longer than a write that is committed allows.
    fn check_window_length(&mut self, process: ProcessId) {
        let seen = &self.processes[process].seen;
        let Some(OpenTerm { leadership, valid_until, .. }) = &seen.open else { return };
        let token = u64::from(leadership.fencing_token());
        let committed = seen.committed.filter(|committed| committed.token == token);
        let is_short = committed.is_some_and(|committed| *valid_until <= committed.sent + committed.deadline);
        self.timeline.demand(is_short, Property::WindowOfACommittedWrite, || {
            format!("p{process}'s window with token {token} is longer than its last committed write allows")
        });
    }

    fn check_exclusion(&mut self, process: ProcessId) {
        if !self.scenario.clocks_bounded {
            return;
        }
        let is_deposed = |open: &OpenTerm| Some(u64::from(open.leadership.fencing_token())) <= self.deposed;
        if self.processes[process].seen.open.as_ref().is_some_and(is_deposed) {
            return;
        }
        let other = self.live_but(process).find_map(|(other, watched)| {
            let open = watched.seen.open.as_ref().filter(|open| open.leadership.is_valid() && !is_deposed(open))?;
            Some((other, open.leadership.fencing_token(), watched.clock.true_at(open.leadership.valid_until())))
        });
        if let Some((other, token, until)) = other {
            let until = until.as_secs_f64();
            let what =
                format!("p{process} leads while p{other} leads with token {token}, until {until:.3}s by its clock");
            self.timeline.violated(Property::Exclusion, what);
        }
    }

    fn closed(&mut self, process: ProcessId) {
        let Watched { is, seen } = &mut self.processes[process];
        let Some(OpenTerm { leadership, valid_until, given_up }) = seen.open.take() else { return };
        let token = leadership.fencing_token();
        let still_valid = leadership.is_valid();
        let in_time = is.clock.local_at(self.timeline.now) < valid_until;
        let asked = self.object.asks_for_another() && self.object.is_held_by(process, token.into());
        let (given_up, watched) = (given_up || seen.cancelled || asked, &self.processes[process]);
        let longest = self.scenario.longest(|timings| timings.deadline);
        let since = valid_until - if self.scenario.reconfigures { longest } else { watched.timings.deadline };
        let was_reconfigured = watched.seen.reconfigured_at.is_some_and(|at| at >= since);
        let was_spoilt = self.object.was_spoilt_since(watched.clock.true_at(since));
        // One lock at a time is silent, which a term survives, unless a rival has a higher token in another.
        let is_left_alone = self.scenario.loses_one_lock
            && self.locks_of(process).all(|lock| lock.term().is_none_or(|(theirs, _)| theirs <= token.into()));
        let watched = &self.processes[process];
        // A hostile writer may take the last lock from a leader that can do without no other. Somebody leads all the same.
        let spurious = if given_up || was_spoilt || self.scenario.hostile.is_some() {
            None
        } else if in_time {
            self.stats.losses += 1;
            // A false answer may end a term, which is safe. No false answer may prolong one.
            // A shorter deadline ends a term whose last renewal is older.
            let excused = !is_left_alone && !self.object.is_held_by(process, token.into())
                || watched.was_deceived_since(since)
                || was_reconfigured;
            (!excused).then(|| "was given up, but the record is still its own".to_owned())
        } else {
            self.stats.deadlines += 1;
            let (wrong, told_to_wait) = watched.trouble_since(since);
            let had_no_time = longest_renewal(&watched.timings, wrong) > watched.timings.deadline;
            let excused = was_reconfigured
                || watched.was_frozen_since(since)
                || match told_to_wait {
                    _ if is_left_alone => false,
                    true => watched.has_tried_to_the_end(valid_until),
                    false => had_no_time,
                };
            (!excused).then(|| format!("ran into its deadline, with {wrong} requests that went wrong"))
        };
        self.processes[process].seen.past.push(leadership);
        self.last_led = self.now();
        self.restart_failback_delay(process);
        self.log(Some(process), || format!("leads no more with token {token}"));
        self.check_stop_before_next_leader(process);
        self.timeline.demand(!still_valid, Property::EndsAtOnce, || {
            format!("p{process}'s handle says that term {token} is over, its Leadership that it is valid")
        });
        if let Some(how) = spurious {
            self.timeline.violated(Property::NoSpuriousLoss, format!("p{process}'s term {token} {how}"));
        }
    }

    /// Records that the process itself is about to end its term, if it has one.
    pub(crate) fn gives_up(&mut self, process: ProcessId) {
        if let Some(open) = &mut self.processes[process].seen.open {
            open.given_up = true;
        }
    }

    pub(crate) fn run_ended(&mut self, process: ProcessId, token: Option<u64>, reason: Option<TermEndReason>) {
        self.is_disturbed(process);
        self.log(Some(process), || format!("run() returned: token {token:?}, {reason:?}"));
    }

    pub(crate) fn cancelled(&mut self, process: ProcessId) {
        self.processes[process].seen.cancelled = true;
        self.log(Some(process), || "is cancelled".to_owned());
    }

    pub(crate) fn stepped_down(&mut self, process: ProcessId, led: bool) {
        self.log(Some(process), || {
            format!("gets the command to step down; {}", if led { "led" } else { "did not lead" })
        });
        self.demand_that_it_does_not_lead(process, || "after it stepped down".to_owned());
        self.check_term(process);
    }

    pub(crate) fn handed_over(&mut self, process: ProcessId, to: &str, led: bool) {
        let before = if led { "led" } else { "did not lead" };
        self.log(Some(process), || format!("gets the command to hand over to {to}; {before}"));
        if led {
            let seen = &mut self.processes[process].seen;
            seen.gave_way = seen.committed.map(|committed| (committed.token, self.timeline.now));
            self.demand_that_it_does_not_lead(process, || "after it has handed over".to_owned());
        }
        self.check_term(process);
    }

    pub(crate) fn check_has_leader(&mut self) {
        let bound = self.scenario.longest_without_leader();
        // A leader follows the request of an operator who insists on another leader, and that of a better candidate.
        let may_hand_over = self.scenario.operator_insists || self.scenario.has_ranks;
        let is_between_terms = may_hand_over && self.now() < self.last_led + bound;
        let nobody_has_to = self.live.iter().all(|process| self.is_idle(*process));
        let is_led = self.live.iter().any(|process| self.processes[*process].leads());
        self.timeline.demand(is_led || is_between_terms || nobody_has_to, Property::LeaderInTime, || {
            format!("nobody leads, though nothing went wrong for more than {bound:?}")
        });
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
