//! The work of a term, and the end of the term in the right order in every case (rule 8).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::{AbortHandle, JoinError};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};
use tokio_util::task::AbortOnDropHandle;

use crate::callbacks::{OnStop, Start};
use crate::election::{Command, Input, WorkEnd};
use crate::leadership::Leadership;
use crate::status::StatusWriter;

/// A term from its start until its work has ended. Dropping an `OpenTerm` ends the term: leadership is lost at once.
/// Dropping its [`TermEvents`] drops the work's task, and then `on_stop_leading` is called.
#[derive(Debug)]
pub(super) struct OpenTerm {
    pub(super) leadership: Leadership,
    work: AbortHandle,
    end: Arc<TermEnd>,
    close: Arc<Mutex<Close>>,
}

/// The events of a term, for the elector that waits for them.
#[derive(Debug)]
pub(super) struct TermEvents {
    leadership: Leadership,
    /// One future for the whole term: each new one would be entered into a list of waiters.
    lost: Pin<Box<WaitForCancellationFutureOwned>>,
    work: Option<AbortOnDropHandle<(WorkEnd, Concluder)>>,
    close: Arc<Mutex<Close>>,
}

/// The end of a term, which is known to its elector and to its events.
#[derive(Debug, Default)]
struct Close {
    stopped: bool,
    /// The concluder of work that ended before its term, held until the term ends.
    concluder: Option<Concluder>,
}

impl OpenTerm {
    /// Starts the work on a task of its own, so that the work cannot delay the renewals.
    pub(super) fn start(
        leadership: Leadership,
        start: Option<Start>,
        on_stop: Option<Arc<OnStop>>,
        status: StatusWriter,
        ended: Option<DropGuard>,
    ) -> (Self, TermEvents) {
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
            // The concluder is dropped after the work, whether the work completes, panics or is dropped.
            let concluder = concluder;
            let Some(start) = start else { return (WorkEnd::Complete, concluder) };
            // Any time may have passed since the term started: the process may have been stopped.
            if !view.is_valid() {
                return (WorkEnd::NotBegun, concluder);
            }
            concluder.end.begun.store(true, Ordering::Release);
            let end = start(view).await;
            (end, concluder)
        };
        let task = tokio::spawn(task);
        let (work, close) = (task.abort_handle(), Arc::new(Mutex::default()));
        let events = TermEvents {
            lost: Box::pin(leadership.lost_owned()),
            leadership: leadership.clone(),
            work: Some(AbortOnDropHandle::new(task)),
            close: Arc::clone(&close),
        };
        (Self { leadership, work, end, close }, events)
    }

    /// Ends leadership, and tells the work to stop. Work that has ended already needs no wait.
    pub(super) fn stop(&self) {
        self.leadership.close();
        let concluder = {
            let mut close = lock(&self.close);
            close.stopped = true;
            close.concluder.take()
        };
        drop(concluder);
    }

    /// Drops the work. The drop takes effect when the work next awaits.
    pub(super) fn drop_work(&self) {
        self.work.abort();
    }

    /// Calls `on_stop_leading` although the work still runs, unless the call has been made already.
    pub(super) fn abandon(&self) {
        self.end.conclude();
    }
}

impl Drop for OpenTerm {
    fn drop(&mut self) {
        self.stop();
    }
}

impl TermEvents {
    /// Completes when code of this process closes the term, or when the work ends. Cancellation safe.
    pub(super) async fn next(&mut self) -> Input {
        let Self { leadership, lost, work, close } = self;
        let stopped = lock(close).stopped;
        let result = tokio::select! {
            biased;
            command = command(leadership, lost.as_mut()), if !stopped => return Input::Command(command),
            result = ended(work) => result,
        };
        self.work = None;
        Input::WorkEnded(match result {
            Ok((end, concluder)) => {
                let mut close = lock(&self.close);
                // After the end of the term, nothing holds back the end of its work.
                if !close.stopped {
                    close.concluder = Some(concluder);
                }
                end
            }
            Err(error) if JoinError::is_panic(&error) => WorkEnd::Panicked,
            Err(_) => WorkEnd::Dropped,
        })
    }
}

fn lock(close: &Mutex<Close>) -> MutexGuard<'_, Close> {
    // No code that could panic runs under the lock.
    close.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn command(leadership: &Leadership, lost: Pin<&mut WaitForCancellationFutureOwned>) -> Command {
    lost.await;
    match leadership.take_command() {
        Some(command) => command,
        // The work panicked. The next input reports its end.
        None => std::future::pending().await,
    }
}

async fn ended<T>(work: &mut Option<AbortOnDropHandle<T>>) -> Result<T, JoinError> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

#[derive(Debug)]
struct Concluder {
    end: Arc<TermEnd>,
    /// Tells the next term that no work of this term runs any more.
    _ended: Option<DropGuard>,
}

impl Drop for Concluder {
    fn drop(&mut self) {
        self.end.conclude();
        // The term stays in the status until now, so that the health check sees work that outlives its lease.
        self.end.status.change(|status| status.term = None);
    }
}

struct TermEnd {
    leadership: Leadership,
    on_stop: Option<Arc<OnStop>>,
    status: StatusWriter,
    /// `true` after the work began. Work that was dropped before it began causes no call of `on_stop_leading`.
    begun: AtomicBool,
    concluded: AtomicBool,
}

impl TermEnd {
    fn conclude(&self) {
        if self.concluded.swap(true, Ordering::AcqRel) {
            return;
        }
        // After a panic of the work, this code runs first, and leadership must be over before any report.
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

/// The work of an earlier term that could not be ended.
#[derive(Clone, Debug, Default)]
pub(super) struct EarlierWork(Option<CancellationToken>);

impl EarlierWork {
    /// Marks new work, and returns the guard to drop when that work has ended.
    pub(super) fn track(&mut self) -> DropGuard {
        let ended = CancellationToken::new();
        self.0 = Some(ended.clone());
        ended.drop_guard()
    }

    /// Returns `true` if no earlier work runs.
    #[cfg(feature = "sessions")]
    pub(super) fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(CancellationToken::is_cancelled)
    }

    /// Completes when no earlier work runs. Cancellation safe.
    pub(super) async fn ended(&self) {
        if let Some(ended) = &self.0 {
            ended.cancelled().await;
        }
    }
}
