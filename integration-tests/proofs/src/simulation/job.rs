//! Jobs that have to succeed only once: every night has one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use leaderelection::lock::{JobId, JobOutcome};
use leaderelection::{DefaultLeaderElector, Elector, Leadership, RunError, TermEndReason};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::dice::Dice;
use super::work::Worker;
use super::world::World;

/// The greatest number of nights by which a host is late.
const LATE_BY: u64 = 20;

/// Lets night after night pass while things go wrong.
pub(super) async fn let_nights_pass(world: Arc<World>, mut dice: Dice) {
    let lease = world.scenario.timings.lease;
    loop {
        world.until_calm(false).await;
        sleep(dice.between(lease / 2, lease * 3)).await;
        if !world.is_calm() {
            world.night.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The elector of a process, and the work for it.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) worker: Worker,
    pub(super) elector: Arc<DefaultLeaderElector>,
    pub(super) cancel: CancellationToken,
}

/// The token of a term and the reason for its end, if they are reported.
pub(super) type End = (Option<u64>, Option<TermEndReason>);

/// Returns what a result tells of the end of its term.
pub(super) fn end_of<T>(result: Result<T, RunError>) -> End {
    match result {
        Err(RunError::Lost { fencing_token, reason }) => (Some(fencing_token.into()), Some(reason)),
        _ => (None, None),
    }
}

impl Host {
    /// Competes for one job.
    pub(super) async fn compete(&self, dice: &mut Dice) -> End {
        let Worker { world, process, .. } = &self.worker;
        let job = self.choose(dice);
        world.oracle().competes_for(*process, &job);
        let worker = self.worker.clone();
        let work = move |leadership: Leadership| {
            let term = worker.whole_term(leadership);
            async move {
                let token = term.await;
                let succeeds = worker.dice.lock().unwrap().chance(0.6);
                worker.world.oracle().job_ended(worker.process, token, succeeds);
                if succeeds { Ok(token) } else { Err(token) }
            }
        };
        let result = self.elector.run_once(self.cancel.clone().cancelled_owned(), &job, work).await;
        world.oracle().job_told(*process, &result);
        if result == Ok(JobOutcome::AlreadyDone) {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {}
                () = sleep(dice.up_to(world.scenario.timings.lease)) => {}
            }
        }
        end_of(result)
    }

    /// The job of this night, or of an earlier one if the host is late. Before the first nights were others, which several
    /// locks know from the start.
    fn choose(&self, dice: &mut Dice) -> JobId {
        let tonight = self.worker.world.night.load(Ordering::Relaxed);
        let late = if dice.chance(0.2) { dice.below(LATE_BY) } else { 0 };
        let name = match late.checked_sub(tonight + 1) {
            Some(before) if self.worker.world.scenario.locks() > 2 => format!("before-{before}"),
            _ => format!("night-{}", tonight.saturating_sub(late)),
        };
        name.parse().expect("a valid name")
    }
}
