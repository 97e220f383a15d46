//! The program beside the sidecar, and what it says about its work.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use leaderelection::ElectionError;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::lock::{JobId, JobOutcome};
use leaderelection::{DefaultLeaderElector, Elector, FencingToken, LeaderHandle, Leadership, RunError};
use serde::Deserialize;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::output::Output;

/// The longest time between the beginning of a term and that of its work, on however busy a machine.
const BEGINNING: Duration = Duration::from_secs(2);

/// The body of POST /term.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TermReport {
    /// The fencing token of the term that the program means.
    pub(super) token: FencingToken,
    pub(super) work: Work,
}

/// The state of the work, as the program says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Work {
    Running,
    /// The work is done, and so is the job of `--job-id`.
    Done,
    /// The work has ended, and another candidate may do better.
    Failed,
    /// The work has ended before it was done.
    Stopped,
}

/// The program beside the sidecar.
#[derive(Debug)]
pub(super) struct Program {
    term: watch::Sender<ReportedTerm>,
    /// The longest time between two reports.
    silence: Option<Duration>,
    /// The program was silent in a term and has asked nothing since, so nobody would work in the next one.
    absent: watch::Sender<bool>,
    /// Cancelled when the program has ended.
    pub(super) gone: CancellationToken,
    /// Says whether the job is done; `None` without one.
    job: Option<watch::Sender<bool>>,
    /// This process ends when the program knows that the job is done.
    ends_when_done: bool,
    /// The program knows that the job is done.
    knows: Notify,
}

/// The current term, and the last report about it.
#[derive(Clone, Debug, Default)]
struct ReportedTerm {
    leadership: Option<Leadership>,
    said: Option<(Work, LocalInstant)>,
}

impl Program {
    pub(super) fn new(silence: Option<Duration>, job: Option<&JobId>, ends_when_done: bool) -> Self {
        let job = job.map(|_| watch::Sender::new(false));
        let (term, absent) = (watch::Sender::default(), watch::Sender::new(false));
        let (gone, knows) = (CancellationToken::new(), Notify::new());
        Self { term, silence, absent, gone, job, ends_when_done, knows }
    }

    /// Notes that the program is there: it asks who leads, or says how its work goes.
    pub(super) fn asks(&self) {
        self.absent.send_if_modified(std::mem::take);
    }

    /// Returns whether the job is done, for an answer to the program; `None` without one.
    pub(super) fn job_done(&self) -> Option<bool> {
        let done = self.job.as_ref().map(|job| *job.borrow());
        if done == Some(true) {
            self.knows.notify_one();
        }
        done
    }

    /// Takes a report. Returns `false` if its term is over.
    pub(super) async fn accepts(&self, report: &TermReport, handle: &LeaderHandle) -> bool {
        if handle.fencing_token() == Some(report.token) {
            // The term of the status begins a moment before its work.
            let mut term = self.term.subscribe();
            let begun =
                term.wait_for(|term| term.leadership.as_ref().map(Leadership::fencing_token) == Some(report.token));
            let _late = tokio::time::timeout(BEGINNING, begun).await;
        }
        self.term.send_if_modified(|term| {
            let Some(leadership) = &term.leadership else { return false };
            let has_ended = matches!(term.said, Some((Work::Done | Work::Failed | Work::Stopped, _)));
            // The end of the work is of use after the end of leadership, too: nobody leads before the work has ended.
            let may_report = leadership.is_valid() || report.work != Work::Running && term.said.is_some();
            let is_accepted = leadership.fencing_token() == report.token && may_report && !has_ended;
            if is_accepted {
                term.said = Some((report.work, SystemClock.now()));
            }
            is_accepted
        })
    }

    /// Competes and leads until `shutdown`, in every term or until the job is done.
    pub(super) async fn lead(
        self: &Arc<Self>,
        elector: &DefaultLeaderElector,
        job: Option<&JobId>,
        cool_down: Duration,
        shutdown: &CancellationToken,
        output: &Output,
    ) -> Result<(), ElectionError> {
        let Some(job) = job else {
            while !shutdown.is_cancelled() {
                let candidacy = shutdown.child_token();
                let mut absent = self.absent.subscribe();
                let mut campaign = std::pin::pin!(elector.campaign(candidacy.clone().cancelled_owned()));
                tokio::select! {
                    biased;
                    end = &mut campaign => end?,
                    _ = absent.wait_for(|absent| *absent) => {
                        candidacy.cancel();
                        campaign.await?;
                    }
                }
                self.stand_back(cool_down, shutdown, output).await;
            }
            return Ok(());
        };
        while !shutdown.is_cancelled() {
            let program = Arc::clone(self);
            let work = async move |leadership: Leadership| match program.end_of_work(&leadership).await {
                Work::Done => Ok(()),
                _ => Err(()),
            };
            match elector.run_once(shutdown.clone().cancelled_owned(), job, work).await {
                Ok(JobOutcome::AlreadyDone) => {
                    output.say(format_args!("{job} is done"));
                    break;
                }
                Ok(done @ (JobOutcome::Done(()) | JobOutcome::Unmarked(()))) => {
                    let unmarked = ", but the lock could not record it; another host may do it again";
                    let doubt = if done == JobOutcome::Done(()) { "" } else { unmarked };
                    output.say(format_args!("{job} is done{doubt}"));
                    self.knows.notify_one();
                    break;
                }
                Ok(JobOutcome::Failed(())) => self.stand_back(cool_down, shutdown, output).await,
                Err(RunError::Election(unfit)) => return Err(unfit),
                _ => {}
            }
        }
        if let Some(job) = self.job.as_ref().filter(|_| !shutdown.is_cancelled()) {
            job.send_replace(true);
            // The program still asks.
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.knows.notified(), if self.ends_when_done => {}
            }
        }
        Ok(())
    }

    /// Lets other candidates go first, and then waits for a program that was silent.
    async fn stand_back(&self, cool_down: Duration, shutdown: &CancellationToken, output: &Output) {
        let mut absent = self.absent.subscribe();
        if *absent.borrow() && !shutdown.is_cancelled() {
            output.say("will compete again when the program asks /leader, /events or /term");
        }
        let returned = async {
            tokio::time::sleep(cool_down).await;
            let _there = absent.wait_for(|absent| !absent).await;
        };
        let _shutdown = shutdown.run_until_cancelled(returned).await;
    }

    /// The work of a term of a campaign.
    pub(super) async fn work(self: Arc<Self>, leadership: Leadership) -> Result<(), &'static str> {
        match self.end_of_work(&leadership).await {
            Work::Failed => Err("the program reported a failure, or sent no heartbeat"),
            _ => {
                leadership.step_down();
                Ok(())
            }
        }
    }

    /// Returns how the work of a term has ended. A program that reports nothing works only while the term is valid.
    async fn end_of_work(&self, leadership: &Leadership) -> Work {
        let mut term = self.term.subscribe();
        let began = SystemClock.now();
        let mut open = Open::new(self, leadership);
        loop {
            let said = term.borrow_and_update().said;
            let is_valid = leadership.is_valid();
            match said {
                Some((Work::Running, _)) => {}
                Some((end, _)) => {
                    open.is_silent = false;
                    return end;
                }
                None if !is_valid => return Work::Stopped,
                None => {}
            }
            let last_report = said.map_or(began, |(_, at)| at);
            let silent_at = self.silence.filter(|_| is_valid).map(|silence| last_report + silence);
            tokio::select! {
                biased;
                () = self.gone.cancelled() => return Work::Stopped,
                _ = term.changed() => {}
                _ = leadership.lost(), if is_valid => {}
                Some(_) = OptionFuture::from(silent_at.map(|at| SystemClock.sleep_until(at))) => {
                    tracing::warn!("no heartbeat from the program within --heartbeat-timeout; ending the term");
                    open.is_silent = true;
                    if said.is_none() {
                        return Work::Failed;
                    }
                    // It may be at work, so the lease is kept until it says otherwise, or for as long as a lost one.
                    leadership.step_down();
                }
            }
        }
    }
}

/// A term about which the program may report, until this value is dropped.
struct Open<'a> {
    program: &'a Program,
    is_silent: bool,
}

impl<'a> Open<'a> {
    fn new(program: &'a Program, leadership: &Leadership) -> Self {
        program.term.send_replace(ReportedTerm { leadership: Some(leadership.clone()), said: None });
        Self { program, is_silent: false }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.program.term.send_replace(ReportedTerm::default());
        self.program.absent.send_if_modified(|absent| self.is_silent && !std::mem::replace(absent, true));
    }
}
