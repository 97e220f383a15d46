//! The checks of the callbacks: their arguments, their order, and their times.

use std::thread;
use std::time::{Duration, Instant};

use leaderelection::handle::Change;
use leaderelection::{EndReason, Leadership, RunError};

use super::terms::GRAIN;
use super::{Newcomer, Oracle, Property, Watched};
use crate::simulation::clock::TrueTime;
use crate::simulation::timeline::{Event, ProcessId};

impl Oracle {
    /// Returns the id of the next process.
    pub(in crate::simulation) fn next_process(&self) -> ProcessId {
        self.processes.len()
    }

    pub(in crate::simulation) fn began(&mut self, now: TrueTime, newcomer: Newcomer) -> ProcessId {
        let process = self.processes.len();
        let event = Event::Began { twin: newcomer.twin };
        self.processes.push(Watched::from(newcomer));
        self.live.push(process);
        self.settles_anew(now, process);
        self.log(now, Some(process), event);
        process
    }

    /// Records that the future of a process was dropped.
    pub(in crate::simulation) fn crashed(&mut self, now: TrueTime, process: ProcessId) {
        self.stats.crashes += 1;
        self.log(now, Some(process), Event::Crashed);
        self.gives_up(process);
        self.look(now, process);
        self.live.retain(|live| *live != process);
        if self.processes[process].handle.is_leader() {
            self.violated(now, Property::EndsAtOnce, format!("p{process} leads after its future was dropped"));
        }
    }

    /// Records that a process returned in good order.
    pub(in crate::simulation) fn ended(&mut self, now: TrueTime, process: ProcessId) {
        self.log(now, Some(process), Event::Ended);
        self.look(now, process);
        self.live.retain(|live| *live != process);
        self.check_stopped(now, process);
    }

    /// Checks all processes at the end of a run, when none runs any more.
    pub(in crate::simulation) fn check_all_stopped(&mut self, now: TrueTime) {
        for process in 0..self.processes.len() {
            self.check_stopped(now, process);
        }
    }

    fn check_stopped(&mut self, now: TrueTime, process: ProcessId) {
        let Watched { starts, stops, works, .. } = self.processes[process];
        if starts != stops || works != 0 {
            let what = format!("p{process} is gone; it started {starts} times, stopped {stops}, {works} still at work");
            self.violated(now, Property::StopOncePerStart, what);
        }
        self.check_new_leader_calls(now, process);
    }

    pub(in crate::simulation) fn work_started(&mut self, now: TrueTime, process: ProcessId, leadership: &Leadership) {
        let (token, valid) = (leadership.fencing_token(), leadership.is_valid());
        let watched = &mut self.processes[process];
        let stopped = watched.starts == watched.stops && watched.works == 0;
        watched.starts += 1;
        watched.works += 1;
        self.log(now, Some(process), Event::WorkStarted { token });
        self.check_job_begins(now, process, leadership);
        if !stopped {
            let what = format!("p{process} starts to lead again before the last term's on_stop_leading");
            self.violated(now, Property::StopOncePerStart, what);
        }
        if !valid {
            let what = format!("p{process}'s work of term {token} begins when its window is over");
            self.violated(now, Property::WorkBeginsInWindow, what);
        }
    }

    pub(in crate::simulation) fn work_ended(&mut self, now: TrueTime, process: ProcessId, token: u64) {
        self.processes[process].works -= 1;
        self.log(now, Some(process), Event::WorkEnded { token });
    }

    /// Checks a poll of the leader's future.
    pub(in crate::simulation) fn works(&mut self, now: TrueTime, process: ProcessId, leadership: &Leadership) {
        let watched = &self.processes[process];
        let timings = watched.timings;
        let (token, local) = (leadership.fencing_token(), watched.clock.local_at(now));
        // An elector that is stopped before it can move the end of its window ends the term, but holds a longer lease.
        let landed = watched.landed.filter(|landed| landed.token == token);
        let (lease, deadline) =
            landed.map_or((timings.lease, timings.deadline), |landed| (landed.lease, landed.deadline));
        let landed = landed.map(|landed| landed.sent + landed.lease);
        let rest = lease - deadline;
        // The work is dropped an eighth of the rest before the end, by a timer that may be later than that.
        let grain = GRAIN.saturating_sub(rest / 8);
        let lease_end = landed.max(Some(leadership.valid_until() + rest)).map(|end| end + grain);
        if let Some(lease_end) = lease_end
            && local >= lease_end
            && !watched.may_be_late(local)
        {
            let late = local.saturating_since(lease_end);
            let what = format!("p{process}'s work of term {token} runs {late:?} after its lease");
            self.violated(now, Property::WorkWithinLease, what);
        }
    }

    /// Checks the moment at which the work learns that its leadership is lost.
    pub(in crate::simulation) fn told_lost(&mut self, now: TrueTime, process: ProcessId, leadership: &Leadership) {
        let watched = &self.processes[process];
        let local = watched.clock.local_at(now);
        let late = local.saturating_since(leadership.valid_until());
        if leadership.is_valid() {
            let what = format!("p{process}'s work was told of its loss, and its Leadership is valid");
            self.violated(now, Property::EndsAtOnce, what);
        } else if late > GRAIN && !watched.may_be_late(local) {
            let token = leadership.fencing_token();
            let what = format!("p{process}'s work was told of the end of term {token} only {late:?} later");
            self.violated(now, Property::ToldInTime, what);
        }
    }

    pub(in crate::simulation) fn stop_called(&mut self, now: TrueTime, process: ProcessId) {
        self.log(now, Some(process), Event::StopCalled);
        let watched = &mut self.processes[process];
        watched.stops += 1;
        let Watched { starts, stops, works, .. } = *watched;
        let leads = watched.handle.is_leader();
        if stops > starts || works > 0 {
            let what = format!(
                "on_stop_leading is called for the {stops}. time in p{process}, which started to lead {starts} times, \
                 with {works} still at work"
            );
            self.violated(now, Property::StopOncePerStart, what);
        }
        if leads {
            self.violated(now, Property::EndsAtOnce, format!("p{process} leads when on_stop_leading is called"));
        }
    }

    pub(super) fn check_release(&mut self, now: TrueTime, process: ProcessId, token: u64) {
        let Watched { starts, stops, works, ref handle, .. } = self.processes[process];
        if works > 0 || starts != stops {
            let what = format!(
                "p{process} releases term {token} with {works} still at work, after {starts} calls of \
                 on_start_leading and {stops} of on_stop_leading"
            );
            self.violated(now, Property::ReleaseAfterWork, what);
        } else if handle.is_leader() {
            self.violated(now, Property::EndsAtOnce, format!("p{process} leads while it releases term {token}"));
        }
    }

    /// Records the holder in an answer that reached the elector; empty for none.
    pub(in crate::simulation) fn heard(&mut self, process: ProcessId, holder: &str) {
        self.processes[process].heard(holder);
    }

    pub(in crate::simulation) fn frozen(&mut self, now: TrueTime, process: ProcessId, event: Event) {
        self.stats.freezes += 1;
        self.log(now, Some(process), event);
    }

    /// Records that everything stood still during a step of `process`. All clocks went on.
    pub(in crate::simulation) fn stood_still(&mut self, now: TrueTime, process: ProcessId, lasts: Duration) {
        self.stats.standstills += 1;
        self.log(now, Some(process), Event::StoodStill { lasts });
        for live in &self.live {
            self.processes[*live].went_on(now, false);
        }
    }

    pub(in crate::simulation) fn went_on(&mut self, now: TrueTime, process: ProcessId, timers_stood: bool) {
        self.log(now, Some(process), Event::WentOn);
        let watched = &mut self.processes[process];
        watched.went_on(now, timers_stood);
    }

    /// Checks that the calls are the observed holders, in order. A call may be missing if the holder was
    /// observed only while the process did not listen, or if a crash came before the call.
    fn check_new_leader_calls(&mut self, now: TrueTime, process: ProcessId) {
        let watched = &self.processes[process];
        let calls = watched.calls.lock().unwrap().clone();
        let mut seen = watched.holders.iter();
        let out_of_order = calls.iter().find(|call| call.is_empty() || !seen.any(|holder| holder == *call));
        if let Some(call) = out_of_order {
            let what = format!("p{process}'s on_new_leader({call:?}): calls {calls:?}, seen {:?}", watched.holders);
            self.violated(now, Property::NewLeaderInOrder, what);
        }
    }

    /// Checks the order of two reports: a process tells the end of its own term before it tells of another leader.
    pub(super) fn check_stop_before_next_leader(&mut self, now: TrueTime, process: ProcessId) {
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
            self.violated(now, Property::StopBeforeNextLeader, what);
        }
    }

    /// Records that the work of a term is complete, by itself.
    pub(in crate::simulation) fn work_complete(&mut self, process: ProcessId, leadership: &Leadership) {
        self.processes[process].complete = Some((leadership.fencing_token(), leadership.is_valid()));
    }

    /// Checks the result of `run_while_leading`, whose work returns its token.
    pub(in crate::simulation) fn output(&mut self, now: TrueTime, process: ProcessId, result: &Result<u64, RunError>) {
        let complete = self.processes[process].complete.take();
        let wrong = match (result, complete) {
            (Ok(output), Some((token, _))) => *output != token,
            (Ok(_), None) => true,
            (Err(_), Some((_, in_time))) => {
                in_time || matches!(result, Err(RunError::Lost { reason: EndReason::Cancelled, .. }))
            }
            (Err(_), None) => false,
        };
        if wrong {
            let what = format!("p{process}'s work was complete with {complete:?}, and its caller got {result:?}");
            self.violated(now, Property::DeliversOutput, what);
        }
    }

    pub(in crate::simulation) fn caller_cancelled(&mut self, now: TrueTime, process: ProcessId) {
        // The second caller may be the one that leads.
        self.gives_up(process);
        self.processes[process].caller_cancelled = Some(now);
    }

    pub(in crate::simulation) fn caller_returned(&mut self, process: ProcessId) {
        self.processes[process].caller_cancelled = None;
    }

    /// Checks that every cancelled process and call has ended, when the system is quiet.
    pub(in crate::simulation) fn check_cancelled_are_gone(&mut self, now: TrueTime) {
        let bound = self.scenario.longest_without_leader();
        let waits = |live: &ProcessId| self.processes[*live].caller_cancelled.is_some_and(|at| now >= at + bound);
        if let Some(process) = self.live.iter().copied().find(waits) {
            let what = format!("the second call of p{process}'s elector was cancelled, and goes on");
            self.violated(now, Property::EndsWhenCancelled, what);
        }
        if let Some(process) = self.live.iter().copied().find(|live| self.processes[*live].cancelled) {
            let what = format!("p{process} was cancelled, and goes on");
            self.violated(now, Property::EndsWhenCancelled, what);
        }
    }

    /// Checks that the last call names the leader, when the system is quiet.
    ///
    /// Simulated time does not wait for the threads of the calls, so real time is given to them.
    pub(in crate::simulation) fn check_all_know_the_leader(&mut self, now: TrueTime) {
        const TIME_OF_A_CALL: Duration = Duration::from_secs(60);

        for process in self.live.clone() {
            let watched = &self.processes[process];
            let leader = watched.handle.leader();
            let asked = Instant::now();
            let called = loop {
                let called = watched.calls.lock().unwrap().last().cloned();
                if leader.is_none() || leader == called || asked.elapsed() > TIME_OF_A_CALL {
                    break called;
                }
                thread::yield_now();
            };
            if leader.is_some() && leader != called {
                let what = format!("p{process} knows {leader:?} as the leader, and was last called with {called:?}");
                self.violated(now, Property::NewLeaderInOrder, what);
            }
        }
    }
}
