//! The work of a leader, well-behaved or not.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaderelection::{LeaderCallbacks, Leadership};
use tokio::time::sleep;

use super::dice::Dice;
use super::gate::gated;
use super::names::ProcessId;
use super::scenario::Trouble;
use super::timings::Timings;
use super::world::World;

#[derive(Clone, Copy, Debug)]
enum Manner {
    /// The work ends as soon as leadership is lost.
    StopsWhenTold,
    /// The work ends this long after leadership is lost.
    EndsLate(Duration),
    /// The work never ends.
    Ignores,
    /// The work ends by itself.
    EndsEarly(Duration),
    Panics(Duration),
    PanicsWhenTold,
    /// The work returns an error.
    Fails(Duration),
    StepsDown(Duration),
}

/// The error of work that fails on purpose.
type Failure = &'static str;

impl Manner {
    fn draw(world: &World, dice: &mut Dice, is_the_term: bool) -> Self {
        let timings = &world.scenario.timings;
        let some_time = timings.delay(dice, timings.lease * 2);
        if is_the_term && world.scenario.nights && !world.is_calm() && dice.chance(0.6) {
            return Self::EndsEarly(dice.up_to(timings.lease / 2));
        }
        let much = world.scenario.trouble == Trouble::Much;
        if world.is_calm() || world.scenario.operator_deletes || dice.chance(if much { 0.3 } else { 0.7 }) {
            return Self::StopsWhenTold;
        }
        match dice.below(if much { 7 } else { 4 }) {
            3 if is_the_term => Self::EndsEarly(some_time),
            3 => Self::Fails(some_time),
            6 => Self::Ignores,
            0 => Self::EndsLate(some_time),
            1 => Self::EndsEarly(some_time),
            2 => Self::StepsDown(some_time),
            4 => Self::Panics(some_time),
            _ => Self::PanicsWhenTold,
        }
    }
}

/// The callbacks of one process, which report every call to the oracle.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) world: Arc<World>,
    pub(super) node: usize,
    pub(super) process: ProcessId,
    pub(super) dice: Arc<Mutex<Dice>>,
    /// The arguments of `on_new_leader`.
    pub(super) calls: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    pub(super) fn callbacks(&self) -> LeaderCallbacks {
        let (starting, stopping, calls) = (self.clone(), self.clone(), Arc::clone(&self.calls));
        let panics = self.world.scenario.callbacks_panic;
        LeaderCallbacks::new()
            .on_start_leading(move |leadership| starting.work(leadership, false))
            .on_stop_leading(move || {
                stopping.world.oracle().stop_called(stopping.process);
                if panics {
                    panic_quietly();
                }
            })
            .on_new_leader(move |leader| {
                let mut calls = calls.lock().unwrap();
                calls.push(leader.to_owned());
                let panics = panics && calls.len().is_multiple_of(3);
                drop(calls);
                if panics {
                    panic_quietly();
                }
            })
    }

    /// Returns the work of a term. `is_the_term` means that the term ends with the work.
    fn work(
        &self,
        leadership: Leadership,
        is_the_term: bool,
    ) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        let manner = Manner::draw(&self.world, &mut self.dice.lock().unwrap(), is_the_term);
        let machine = &self.world.nodes[self.node];
        self.world.oracle().work_started(self.process, &leadership);
        let at_work = AtWork { worker: self.clone(), token: leadership.fencing_token().into() };
        machine.starts_work.notify_waiters();
        self.world.led.notify_waiters();
        let (worker, other, watched) = (self.clone(), self.clone(), leadership.clone());
        let work = async move {
            let result = at_work.worker.behave(manner, &leadership, is_the_term).await;
            if is_the_term {
                at_work.worker.complete(&leadership);
            }
            drop(at_work);
            result
        };
        let before = move || other.world.let_another_task_run_at_times(other.process);
        gated(machine.gate.clone(), work, before, move || {
            worker.world.oracle().works(worker.process, &watched);
        })
    }

    /// Returns the work of a whole term. Its output is the term's token.
    pub(super) fn whole_term(&self, leadership: Leadership) -> impl Future<Output = u64> + Send + use<> {
        let (token, work) = (leadership.fencing_token().into(), self.work(leadership, true));
        async move {
            let _ = work.await;
            token
        }
    }

    /// Reports that the work of `run_while_leading` is complete. The process may be stopped before its elector learns
    /// of that.
    fn complete(&self, leadership: &Leadership) {
        let (world, timings) = (&self.world, self.world.scenario.timings);
        world.oracle().work_complete(self.process, leadership);
        let mut dice = self.dice.lock().unwrap();
        if !world.is_calm() && dice.chance(world.scenario.trouble.of_requests()) {
            world.freeze(self.node, self.process, timings.delay(&mut dice, timings.lease * 2), dice.chance(0.3));
        }
    }

    async fn behave(&self, manner: Manner, leadership: &Leadership, is_the_term: bool) -> Result<(), Failure> {
        let world = &self.world;
        if let Manner::EndsEarly(after) | Manner::Panics(after) | Manner::StepsDown(after) | Manner::Fails(after) =
            manner
        {
            let acts = tokio::select! {
                biased;
                _ = leadership.lost() => false,
                () = sleep(after) => !world.is_calm(),
            };
            if acts && !matches!(manner, Manner::EndsEarly(_)) || is_the_term {
                world.oracle().gives_up(self.process);
            }
            match manner {
                Manner::EndsEarly(_) if acts => return Ok(()),
                Manner::Fails(_) if acts => {
                    world.oracle().work_failed(self.process, leadership);
                    return Err("a failure on purpose");
                }
                Manner::Panics(_) if acts => panic_quietly(),
                Manner::StepsDown(_) if acts => {
                    leadership.step_down();
                    world.oracle().stepped_down(self.process, true);
                }
                _ => {}
            }
        }
        leadership.lost().await;
        world.oracle().told_lost(self.process, leadership);
        let Timings { lease, deadline, retry, .. } = world.scenario.timings;
        let margin = lease - deadline;
        match manner {
            Manner::EndsLate(after) => sleep(after).await,
            // Frequent awaits make a poll after the end of the lease visible to the oracle.
            Manner::Ignores => loop {
                sleep((margin / 16).clamp(Duration::from_millis(1), retry / 4)).await;
            },
            Manner::PanicsWhenTold => panic_quietly(),
            // An error after the end of the term has no consequences.
            Manner::Fails(_) => return Err("a failure that comes too late"),
            _ => {}
        }
        Ok(())
    }
}

/// Panics without the message of an unexpected panic.
fn panic_quietly() {
    resume_unwind(Box::new("a panic on purpose"));
}

/// A guard that reports the end of the work to the oracle, however the work ends.
struct AtWork {
    worker: Worker,
    token: u64,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let Worker { world, process, .. } = &self.worker;
        world.oracle().work_ended(*process, self.token);
    }
}
