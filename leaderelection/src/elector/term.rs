//! A term's work, and its end in the right order whatever happens (rule 8).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio::task::JoinError;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use crate::callbacks::{OnStop, Start};
use crate::election::{Command, Input, WorkEnd};
use crate::leadership::Leadership;
use crate::status::Status;

/// A term from its start until its work has ended. Dropping it ends it: leadership is lost at once,
/// the work's task is dropped, and then `on_stop_leading` is called.
#[derive(Debug)]
pub(super) struct OpenTerm {
    pub(super) leadership: Leadership,
    work: Option<AbortOnDropHandle<(WorkEnd, Concluder)>>,
    /// Held until the term ends, if the work ended before.
    concluder: Option<Concluder>,
    end: Arc<TermEnd>,
    stopped: bool,
}

impl OpenTerm {
    /// Starts the work on a task of its own, so that it cannot starve the renewals.
    pub(super) fn start(
        leadership: Leadership,
        start: Option<Start>,
        on_stop: Option<Arc<OnStop>>,
        status: watch::Sender<Status>,
        ended: DropGuard,
    ) -> Self {
        let end = Arc::new(TermEnd {
            leadership: leadership.clone(),
            on_stop,
            status,
            begun: AtomicBool::new(start.is_none()),
            concluded: AtomicBool::new(false),
        });
        let concluder = Concluder { end: Arc::clone(&end), _ended: ended };
        let view = leadership.clone();
        let task = async move {
            // The concluder is dropped after the work: when it completes, panics or is dropped.
            let concluder = concluder;
            let Some(start) = start else { return (WorkEnd::Complete, concluder) };
            // Any time may have passed since the term started: the process may have been stopped.
            if !view.is_valid() {
                return (WorkEnd::NotBegun, concluder);
            }
            concluder.end.begun.store(true, Ordering::Release);
            start(view).await;
            (WorkEnd::Complete, concluder)
        };
        Self {
            leadership,
            work: Some(AbortOnDropHandle::new(tokio::spawn(task))),
            concluder: None,
            end,
            stopped: false,
        }
    }

    /// Completes when code of this process closes the term, or when the work ends. Cancellation safe.
    pub(super) async fn next(&mut self) -> Input {
        let Self { leadership, work, stopped, .. } = self;
        let result = tokio::select! {
            biased;
            command = command(leadership), if !*stopped => return Input::Command(command),
            result = ended(work) => result,
        };
        self.work = None;
        Input::WorkEnded(match result {
            Ok((end, concluder)) => {
                // When the term is over nothing holds the end of its work back.
                self.concluder = Some(concluder).filter(|_| !self.stopped);
                end
            }
            Err(error) if JoinError::is_panic(&error) => WorkEnd::Panicked,
            Err(_) => WorkEnd::Dropped,
        })
    }

    /// Ends leadership, and tells the work. Work that has ended before needs no more waiting.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.leadership.close();
        self.concluder = None;
    }

    /// Drops the work. It takes effect when the work next awaits.
    pub(super) fn drop_work(&self) {
        if let Some(work) = &self.work {
            work.abort();
        }
    }

    /// Calls `on_stop_leading`, if nothing has yet, although the work still runs.
    pub(super) fn abandon(&self) {
        self.end.conclude();
    }
}

async fn command(leadership: &Leadership) -> Command {
    leadership.lost().await;
    match leadership.take_command() {
        Some(command) => command,
        // The work panicked. Its end is told next.
        None => std::future::pending().await,
    }
}

async fn ended<T>(work: &mut Option<AbortOnDropHandle<T>>) -> Result<T, JoinError> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

impl Drop for OpenTerm {
    fn drop(&mut self) {
        self.leadership.close();
    }
}

#[derive(Debug)]
struct Concluder {
    end: Arc<TermEnd>,
    /// Tells the next term that nothing of this one runs any more.
    _ended: DropGuard,
}

impl Drop for Concluder {
    fn drop(&mut self) {
        self.end.conclude();
        // Not before: work that outlives its lease is for the health check to see.
        self.end.status.send_modify(|status| status.term = None);
    }
}

struct TermEnd {
    leadership: Leadership,
    on_stop: Option<Arc<OnStop>>,
    status: watch::Sender<Status>,
    /// `on_stop_leading` answers `on_start_leading`: work that was dropped before it began has neither.
    begun: AtomicBool,
    concluded: AtomicBool,
}

impl TermEnd {
    fn conclude(&self) {
        if self.concluded.swap(true, Ordering::AcqRel) {
            return;
        }
        // Work that panicked gets here first: leadership must be over before anybody is told.
        self.leadership.close();
        if self.begun.load(Ordering::Acquire)
            && let Some(on_stop) = &self.on_stop
            && catch_unwind(AssertUnwindSafe(|| on_stop())).is_err()
        {
            tracing::error!("on_stop_leading panicked; the election goes on");
        }
    }
}

impl std::fmt::Debug for TermEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TermEnd").field("concluded", &self.concluded).finish_non_exhaustive()
    }
}

/// Work of the term before that could not be made to end.
#[derive(Clone, Debug, Default)]
pub(super) struct EarlierWork(Option<CancellationToken>);

impl EarlierWork {
    /// Marks new work, and returns what to drop when it has ended.
    pub(super) fn track(&mut self) -> DropGuard {
        let ended = CancellationToken::new();
        self.0 = Some(ended.clone());
        ended.drop_guard()
    }

    /// Completes when no work runs. Cancellation safe.
    pub(super) async fn ended(&self) {
        if let Some(ended) = &self.0 {
            ended.cancelled().await;
        }
    }
}
