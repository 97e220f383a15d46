//! The checks of the callbacks: their arguments, their order, and their times.

use std::thread;
use std::time::{Duration, Instant};

use leaderelection::handle::Change;
use leaderelection::{Leadership, RunError, TermEndReason};

use super::knowledge::Oracle;
use super::process::{GRAIN, Newcomer, Seen, Watched};
use super::property::Property;
use crate::simulation::names::ProcessId;

impl Oracle {
    /// Returns the id of the next process.
    pub(crate) fn next_process(&self) -> ProcessId {
        self.processes.len()
    }

    pub(crate) fn began(&mut self, newcomer: Newcomer) {
        let process = self.next_process();
        let twin = if newcomer.twin { ", with an identity that others use too" } else { "" };
        self.processes.push(Watched { is: newcomer, seen: Seen::default() });
        self.live.push(process);
        self.restart_failback_delay(process);
        self.log(Some(process), || format!("starts{twin}"));
    }

    /// Records that the future of a process was dropped.
    pub(crate) fn crashed(&mut self, process: ProcessId) {
        self.stats.crashes += 1;
        self.log(Some(process), || "CRASHES".to_owned());
        self.gives_up(process);
        self.check_term(process);
        self.live.retain(|live| *live != process);
        self.demand_that_it_does_not_lead(process, || "after its future was dropped".to_owned());
    }

    /// Records that a process shut down gracefully.
    pub(crate) fn ended(&mut self, process: ProcessId) {
        self.log(Some(process), || "has ended".to_owned());
        self.check_term(process);
        self.live.retain(|live| *live != process);
        self.check_stopped(process);
    }

    /// Checks all processes at the end of a run, when none runs any more.
    pub(crate) fn check_all_stopped(&mut self) {
        (0..self.processes.len()).for_each(|process| self.check_stopped(process));
    }

    fn check_stopped(&mut self, process: ProcessId) {
        let Seen { starts, stops, works, .. } = self.processes[process].seen;
        self.timeline.demand(starts == stops && works == 0, Property::StopOncePerStart, || {
            format!("p{process} is gone; it started {starts} times, stopped {stops}, {works} still at work")
        });
        self.check_new_leader_calls(process);
    }

    pub(super) fn demand_that_it_does_not_lead(&mut self, process: ProcessId, when: impl FnOnce() -> String) {
        let leads = self.processes[process].handle.is_leader();
        self.timeline.demand(!leads, Property::EndsAtOnce, || format!("p{process} leads {}", when()));
    }

    pub(crate) fn work_started(&mut self, process: ProcessId, leadership: &Leadership) {
        let (token, valid) = (leadership.fencing_token(), leadership.is_valid());
        let seen = &mut self.processes[process].seen;
        let stopped = seen.starts == seen.stops && seen.works == 0;
        seen.starts += 1;
        seen.works += 1;
        self.log(Some(process), || format!("on_start_leading({token})"));
        self.check_job_begins(process, leadership);
        self.timeline.demand(stopped, Property::StopOncePerStart, || {
            format!("p{process} starts to lead again before the last term's on_stop_leading")
        });
        self.timeline.demand(valid, Property::WorkBeginsInWindow, || {
            format!("p{process}'s work of term {token} begins when its window is over")
        });
    }

    pub(crate) fn work_ended(&mut self, process: ProcessId, token: u64) {
        self.processes[process].seen.works -= 1;
        self.log(Some(process), || format!("work of term {token} is gone"));
    }

    /// Checks a poll of the leader's future.
    pub(crate) fn works(&mut self, process: ProcessId, leadership: &Leadership) {
        let watched = &self.processes[process];
        let (token, local) = (u64::from(leadership.fencing_token()), watched.clock.local_at(self.now()));
        // An elector that is stopped before it can move the end of its window ends the term, but holds a longer lease.
        let committed = watched.seen.committed.filter(|committed| committed.token == token);
        let (lease, deadline) = committed.map_or((watched.timings.lease, watched.timings.deadline), |committed| {
            (committed.lease, committed.deadline)
        });
        let committed = committed.map(|committed| committed.sent + committed.lease);
        let rest = lease - deadline;
        // The work is dropped an eighth of the rest before the end, by a timer that may be later than that.
        let grain = GRAIN.saturating_sub(rest / 8);
        let lease_end = committed.max(Some(leadership.valid_until() + rest)).map(|end| end + grain);
        let late = lease_end.filter(|end| local >= *end && !watched.may_be_late(local));
        self.timeline.demand(late.is_none(), Property::WorkWithinLease, || {
            let late = late.map(|end| local.saturating_since(end)).unwrap_or_default();
            format!("p{process}'s work of term {token} runs {late:?} after its lease")
        });
    }

    /// Checks the moment at which the work learns that its leadership is lost.
    pub(crate) fn told_lost(&mut self, process: ProcessId, leadership: &Leadership) {
        let watched = &self.processes[process];
        let local = watched.clock.local_at(self.now());
        let late = local.saturating_since(leadership.valid_until());
        self.timeline.demand(!leadership.is_valid(), Property::EndsAtOnce, || {
            format!("p{process}'s work learned of its loss, and its Leadership is valid")
        });
        self.timeline.demand(late <= GRAIN || watched.may_be_late(local), Property::ToldInTime, || {
            let token = leadership.fencing_token();
            format!("p{process}'s work learned of the end of term {token} only {late:?} later")
        });
    }

    pub(crate) fn stop_called(&mut self, process: ProcessId) {
        self.log(Some(process), || "on_stop_leading()".to_owned());
        self.processes[process].seen.stops += 1;
        let Seen { starts, stops, works, .. } = self.processes[process].seen;
        self.timeline.demand(stops <= starts && works == 0, Property::StopOncePerStart, || {
            format!(
                "on_stop_leading is called for the {stops}. time in p{process}, which started to lead {starts} times, \
                 with {works} still at work"
            )
        });
        self.demand_that_it_does_not_lead(process, || "when on_stop_leading is called".to_owned());
    }

    pub(super) fn check_release(&mut self, process: ProcessId, token: u64) {
        let Seen { starts, stops, works, .. } = self.processes[process].seen;
        self.timeline.demand(works == 0 && starts == stops, Property::ReleaseAfterWork, || {
            format!(
                "p{process} releases term {token} with {works} still at work, after {starts} calls of \
                 on_start_leading and {stops} of on_stop_leading"
            )
        });
        self.demand_that_it_does_not_lead(process, || format!("while it releases term {token}"));
    }

    /// Records the holder in an answer that reached the elector; empty for none.
    pub(crate) fn answered_to(&mut self, process: ProcessId, holder: &str) {
        let holders = &mut self.processes[process].seen.holders;
        if holders.last().map(String::as_str) != Some(holder) {
            holders.push(holder.to_owned());
        }
    }

    pub(crate) fn frozen(&mut self, process: ProcessId, lasts: Duration, timers_too: bool) {
        self.stats.freezes += 1;
        let timers = if timers_too { ", its timers too" } else { "" };
        self.log(Some(process), || format!("FROZEN for {lasts:?}{timers}"));
    }

    /// Records that everything stood still during a step of `process`. All clocks went on.
    pub(crate) fn stood_still(&mut self, process: ProcessId, lasts: Duration) {
        self.stats.standstills += 1;
        self.log(Some(process), || format!("goes on after ALL STOOD STILL for {lasts:?}"));
        for live in &self.live {
            self.processes[*live].went_on(self.timeline.now, false);
        }
    }

    pub(crate) fn went_on(&mut self, process: ProcessId, timers_stood: bool) {
        self.log(Some(process), || "goes on".to_owned());
        self.processes[process].went_on(self.timeline.now, timers_stood);
    }

    /// Checks that the calls are the observed holders, in order. A call may be missing if the holder was
    /// observed only while the process did not listen, or if a crash came before the call.
    fn check_new_leader_calls(&mut self, process: ProcessId) {
        let Watched { is, seen } = &self.processes[process];
        let calls = is.calls.lock().unwrap();
        let mut holders = seen.holders.iter();
        let out_of_order = calls.iter().find(|call| call.is_empty() || !holders.any(|holder| holder == *call));
        self.timeline.demand(out_of_order.is_none(), Property::NewLeaderInOrder, || {
            format!("p{process}'s on_new_leader({out_of_order:?}): calls {calls:?}, seen {:?}", seen.holders)
        });
    }

    /// Checks the order of two reports: a process tells the end of its own term before it tells of another leader.
    pub(super) fn check_stop_before_next_leader(&mut self, process: ProcessId) {
        let watched = &self.processes[process];
        let mut leads = None;
        let broken = watched.handle.transitions().into_iter().find_map(|transition| match transition.change {
            Change::StartedLeading { fencing_token, .. } => {
                leads = Some(fencing_token);
                None
            }
            Change::StoppedLeading { .. } => {
                leads = None;
                None
            }
            Change::LeaderChanged { to, .. } if to.as_ref() != Some(&watched.identity) => Some((leads?, to)),
            _ => None,
        });
        if let Some((token, next)) = broken {
            let what = format!("p{process} tells that {next:?} leads before it tells that term {token} is over");
            self.timeline.violated(Property::StopBeforeNextLeader, what);
        }
    }

    /// Records that the work of a term is complete, by itself.
    pub(crate) fn work_complete(&mut self, process: ProcessId, leadership: &Leadership) {
        self.processes[process].seen.complete = Some((leadership.fencing_token().into(), leadership.is_valid()));
    }

    /// Checks the result of `run_while_leading`, whose work returns its token.
    pub(crate) fn output(&mut self, process: ProcessId, result: &Result<u64, RunError>) {
        let complete = self.processes[process].seen.complete.take();
        let wrong = match (result, complete) {
            (Ok(output), Some((token, _))) => *output != token,
            (Ok(_), None) => true,
            (Err(_), Some((_, in_time))) => {
                in_time || matches!(result, Err(RunError::Lost { reason: TermEndReason::Cancelled, .. }))
            }
            (Err(_), None) => false,
        };
        self.timeline.demand(!wrong, Property::DeliversOutput, || {
            format!("p{process}'s work was complete with {complete:?}, and its caller got {result:?}")
        });
    }

    pub(crate) fn caller_cancelled(&mut self, process: ProcessId) {
        // The second caller may be the one that leads.
        self.gives_up(process);
        self.processes[process].seen.caller_cancelled = Some(self.now());
    }

    pub(crate) fn caller_returned(&mut self, process: ProcessId) {
        self.processes[process].seen.caller_cancelled = None;
    }

    /// Checks that every cancelled process and call has ended, when the system is quiet.
    pub(crate) fn check_cancelled_are_gone(&mut self) {
        let bound = self.scenario.longest_without_leader();
        for process in &self.live {
            let seen = &self.processes[*process].seen;
            let has_ended = seen.caller_cancelled.is_none_or(|at| self.timeline.now < at + bound);
            self.timeline.demand(has_ended, Property::EndsWhenCancelled, || {
                format!("the second call of p{process}'s elector was cancelled, and goes on")
            });
            self.timeline.demand(!seen.cancelled, Property::EndsWhenCancelled, || {
                format!("p{process} was cancelled, and goes on")
            });
        }
    }

    /// Checks that the last call names the leader, when the system is quiet.
    ///
    /// Simulated time does not wait for the threads of the calls, so real time is given to them.
    pub(crate) fn check_all_know_the_leader(&mut self) {
        const TIME_OF_A_CALL: Duration = Duration::from_secs(60);

        for process in &self.live {
            let watched = &self.processes[*process];
            let leader = watched.handle.leader();
            let asked = Instant::now();
            let called = loop {
                let called = watched.calls.lock().unwrap().last().cloned();
                if leader.is_none() || leader == called || asked.elapsed() > TIME_OF_A_CALL {
                    break called;
                }
                thread::yield_now();
            };
            self.timeline.demand(leader.is_none() || leader == called, Property::NewLeaderInOrder, || {
                format!("p{process} knows {leader:?} as the leader, and was last called with {called:?}")
            });
        }
    }
}
