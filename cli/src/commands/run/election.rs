//! The election that `run` takes part in.

use std::sync::Arc;

use leaderelection::handle::{BeginReason, Change};
use leaderelection::lock::{JobId, JobOutcome};
use leaderelection::{DefaultLeaderElector, Elector, LeaderHandle, RunError, TermEndReason};

use super::slots::{Numbered, TermEnd};
use super::work::Job;

/// The end of the election.
pub(super) enum ElectionEnd {
    Terms(TermEnd),
    /// The job of `--job-id` was done before. The leader is the last one that this process has seen.
    AlreadyDone {
        leader: Option<String>,
    },
    /// The job of `--job-id` is done, and the lock may not say so.
    Unmarked,
}

/// The election that this process takes part in.
pub(super) enum Election {
    /// One leader at a time.
    Plain(Box<DefaultLeaderElector>),
    /// Several holders at a time.
    Slots(Box<Numbered>),
}

impl Election {
    pub(super) fn handles(&self) -> Vec<LeaderHandle> {
        match self {
            Self::Plain(elector) => vec![elector.handle()],
            Self::Slots(slots) => slots.handles(),
        }
    }

    /// Leads for one term, or term after term, or until the job `once_for` is done.
    pub(super) async fn run(&self, once_for: Option<&JobId>, job: &Arc<Job>) -> ElectionEnd {
        let shutdown = &job.shutdown;
        match self {
            Self::Plain(elector) => match once_for {
                Some(id) => once(elector, id, job).await,
                None if job.again => {
                    ElectionEnd::Terms(elector.campaign(shutdown.clone().cancelled_owned()).await.map(|()| None))
                }
                None => {
                    let end = elector.run(shutdown.clone().cancelled_owned()).await;
                    ElectionEnd::Terms(end.map(|outcome| outcome.reason().cloned()))
                }
            },
            Self::Slots(slots) => ElectionEnd::Terms(slots.run(job).await),
        }
    }
}

/// Runs the command, unless the lock says that the job is done.
async fn once(elector: &DefaultLeaderElector, id: &JobId, job: &Arc<Job>) -> ElectionEnd {
    let (at_work, handle, name) = (Arc::clone(job), elector.handle(), id.clone());
    let work = async move |leadership| {
        if let Some(dead) = expired_holder(&handle) {
            let what = format!("{dead} held the lease and did not record that job {name} is done; running the command");
            at_work.output.say(what);
        }
        Arc::clone(&at_work).lead(leadership, None).await;
        if at_work.state.has_succeeded() { Ok(()) } else { Err(()) }
    };
    match elector.run_once(job.shutdown.clone().cancelled_owned(), id, work).await {
        Ok(JobOutcome::AlreadyDone) => ElectionEnd::AlreadyDone { leader: last_leader(&elector.handle()) },
        Ok(JobOutcome::Unmarked(())) => ElectionEnd::Unmarked,
        // The term ends with the command, a moment before the work does.
        Err(RunError::Lost { .. }) if job.state.has_succeeded() => ElectionEnd::Unmarked,
        Ok(_) => ElectionEnd::Terms(Ok(Some(TermEndReason::WorkFinished))),
        Err(RunError::Lost { reason, .. }) => ElectionEnd::Terms(Ok(Some(reason))),
        Err(RunError::Election(unfit)) => ElectionEnd::Terms(Err(unfit)),
        Err(_) => ElectionEnd::Terms(Ok(None)),
    }
}

/// The holder whose lease expired before the newest term of this process; `None` if that lease was released, or if the
/// term had another reason.
fn expired_holder(handle: &LeaderHandle) -> Option<String> {
    let mut transitions = handle.transitions().into_iter().rev();
    let began = transitions.find_map(|transition| match transition.change {
        Change::StartedLeading { reason, .. } => Some(reason),
        _ => None,
    });
    match began {
        Some(BeginReason::Expired { of }) => Some(of),
        _ => None,
    }
}

/// The last leader that this process has seen.
fn last_leader(handle: &LeaderHandle) -> Option<String> {
    handle.transitions().into_iter().rev().find_map(|transition| match transition.change {
        Change::LeaderChanged { from, to } => to.or(from),
        _ => None,
    })
}
