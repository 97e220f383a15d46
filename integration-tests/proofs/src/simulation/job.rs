//! Jobs that have to succeed only once: every night has one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use leaderelection::lock::{JobId, JobOutcome};
use leaderelection::{DefaultLeaderElector, EndReason, Leadership, RunError};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::dice::Dice;
use super::names::ProcessId;
use super::work::Worker;
use super::world::World;

/// The greatest number of nights by which a host is late.
const LATE_BY: u64 = 20;

/// Lets night after night pass while things go wrong.
pub(super) async fn let_nights_pass(world: Arc<World>, mut dice: Dice) {
    if !world.scenario.nights {
        return std::future::pending().await;
    }
    let lease = world.scenario.timings.lease;
    loop {
        world.until_calm(false).await;
        sleep(dice.between(lease / 2, lease * 3)).await;
        if !world.is_calm() {
            world.night.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A process that does the jobs of the nights.
pub(super) struct Host {
    pub(super) world: Arc<World>,
    pub(super) process: ProcessId,
    pub(super) elector: Arc<DefaultLeaderElector>,
    pub(super) cancel: CancellationToken,
    pub(super) worker: Worker,
}

impl Host {
    /// Competes for one job. Returns the token of the term and the reason for its end, if they are told.
    pub(super) async fn compete(&self, dice: &mut Dice) -> (Option<u64>, Option<EndReason>) {
        let Self { world, process, worker, .. } = self;
        let job = self.choose(dice);
        world.oracle().competes_for(*process, &job);
        let (worker, process) = (worker.clone(), *process);
        let work = move |leadership: Leadership| {
            let (token, work) = (leadership.fencing_token(), worker.work(leadership, true));
            async move {
                let _ = work.await;
                let succeeds = worker.dice.lock().unwrap().chance(0.6);
                worker.world.oracle().job_ended(process, token, succeeds);
                if succeeds { Ok(token) } else { Err(token) }
            }
        };
        let result = self.elector.run_once(self.cancel.clone(), &job, work).await;
        world.oracle().job_told(process, &result);
        if result == Ok(JobOutcome::AlreadyDone) {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {}
                () = sleep(dice.up_to(world.scenario.timings.lease)) => {}
            }
        }
        match result {
            Err(RunError::Lost { fencing_token, reason }) => (Some(fencing_token), Some(reason)),
            _ => (None, None),
        }
    }

    /// The job of this night, or of an earlier one if the host is late.
    fn choose(&self, dice: &mut Dice) -> JobId {
        let tonight = self.world.night.load(Ordering::Relaxed);
        let late = if dice.chance(0.2) { dice.below(LATE_BY) } else { 0 };
        format!("night-{}", tonight.saturating_sub(late)).parse().expect("a valid name")
    }
}
