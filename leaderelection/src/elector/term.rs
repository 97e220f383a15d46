//! The work of a term, and the end of the term in the right order in every case (rule 8).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::callbacks::{OnStop, Start};
use crate::election::{Input, WorkEnd};
use crate::leadership::Leadership;
use crate::status::StatusWriter;
use crate::work_outcome::Done;

/// A term from its start until its work has ended. Dropping an `OpenTerm` ends the term: leadership is lost at once, and
/// the task of the work is dropped. Then `on_stop_leading` is called.
#[derive(Debug)]
pub(super) struct OpenTerm {
    work: AbortHandle,
    end: Arc<TermEnd>,
}

impl OpenTerm {
    /// Starts the work on a task of its own, so that the work cannot delay the renewals.
    pub(super) fn start(
        leadership: Leadership,
        start: Option<Start>,
        on_stop: Option<Arc<OnStop>>,
        status: StatusWriter,
    ) -> Self {
        let end = Arc::new(TermEnd {
            leadership,
            on_stop,
            progress: Mutex::new(Progress { begun: start.is_none(), ..Progress::new(status) }),
            gone: Notify::new(),
        });
        let concluder = Concluder { end: Arc::clone(&end), work_end: WorkEnd::Dropped };
        let view = end.leadership.clone();
        let task = async move {
            // The concluder is dropped after the work, whether the work completes, panics or is dropped.
            let mut concluder = concluder;
            let Some(start) = start else { return concluder.work_end = WorkEnd::Complete };
            // Any time may have passed since the term started: the process may have been stopped.
            if !view.is_valid() {
                return concluder.work_end = WorkEnd::NotBegun;
            }
            concluder.end.progress().begun = true;
            let Done { end, error } = start(view).await;
            concluder.work_end = end;
            concluder.end.progress().error = error;
        };
        let work = tokio::spawn(task).abort_handle();
        Self { work, end }
    }

    pub(super) fn leadership(&self) -> &Leadership {
        &self.end.leadership
    }

    /// Returns the next event, if there is one: a command of this process, or the end of the work. The listener of
    /// [`leadership`](Self::leadership) is told that there may be one.
    pub(super) fn next_event(&self) -> Option<Input> {
        let mut progress = self.end.progress();
        if !progress.stopped
            && let Some(command) = self.end.leadership.take_command()
        {
            return Some(Input::Command(command));
        }
        progress.untold.take().map(Input::WorkEnded)
    }

    /// Returns the error with which the work failed, once.
    pub(super) fn take_error(&self) -> Option<String> {
        self.end.progress().error.take()
    }

    /// Ends leadership, and tells the work to stop. Work that has ended already needs no wait.
    pub(super) fn stop(&self) {
        self.end.leadership.close();
        let mut progress = self.end.progress();
        progress.stopped = true;
        let leaves = progress.leaves();
        drop(progress);
        self.end.leave(leaves);
    }

    /// Drops the work. The drop takes effect when the work next awaits.
    pub(super) fn drop_work(&self) {
        self.work.abort();
    }

    /// Calls `on_stop_leading` although the work still runs, unless the call has been made already.
    pub(super) fn abandon(&self) {
        self.end.conclude();
    }

    /// The work, which may outlive its term.
    pub(super) fn work(&self) -> EarlierWork {
        EarlierWork(Some(Arc::clone(&self.end)))
    }
}

impl Drop for OpenTerm {
    fn drop(&mut self) {
        self.stop();
        self.drop_work();
    }
}

/// Tells the term of the end of its work.
struct Concluder {
    end: Arc<TermEnd>,
    /// The way in which the work ends if it ends now, except by a panic.
    work_end: WorkEnd,
}

impl Drop for Concluder {
    fn drop(&mut self) {
        let work_end = if std::thread::panicking() { WorkEnd::Panicked } else { self.work_end };
        self.end.work_ended(work_end);
    }
}

/// The end of a term, which its elector and its work reach together.
struct TermEnd {
    leadership: Leadership,
    on_stop: Option<Arc<OnStop>>,
    progress: Mutex<Progress>,
    /// Rings when nothing of the work runs any more.
    gone: Notify,
}

#[derive(Debug)]
struct Progress {
    /// The status that shows the term, until the term leaves it.
    status: Option<StatusWriter>,
    /// `true` after the work began. Work that was dropped before it began causes no call of `on_stop_leading`.
    begun: bool,
    /// `true` after the term was stopped.
    stopped: bool,
    ended: Option<WorkEnd>,
    concluded: bool,
    /// `true` if nothing of the work runs any more, and all that follows has happened.
    gone: bool,
    /// The end of the work, until the elector has asked for it.
    untold: Option<WorkEnd>,
    /// The error with which the work failed, until the elector has asked for it.
    error: Option<String>,
}

impl Progress {
    fn new(status: StatusWriter) -> Self {
        Self {
            status: Some(status),
            begun: false,
            stopped: false,
            ended: None,
            concluded: false,
            gone: false,
            untold: None,
            error: None,
        }
    }

    /// Returns the status, once, if nothing keeps the term in it any more. The elector goes on leading after work that
    /// ended by itself.
    fn leaves(&mut self) -> Option<StatusWriter> {
        let is_over = match self.ended {
            None => false,
            Some(WorkEnd::Panicked | WorkEnd::Dropped) => true,
            Some(_) => self.stopped,
        };
        self.status.take_if(|_| is_over)
    }
}

impl TermEnd {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        // No code that could panic runs under the lock.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work_ended(&self, end: WorkEnd) {
        let mut progress = self.progress();
        progress.ended = Some(end);
        let leaves = progress.leaves();
        drop(progress);
        // `on_stop_leading` is called before the elector can release the lease.
        self.leave(leaves);
        let mut progress = self.progress();
        (progress.gone, progress.untold) = (true, Some(end));
        drop(progress);
        self.leadership.tell_listener();
        self.gone.notify_waiters();
    }

    /// The term stays in the status until now, so that the health check sees work that outlives its lease.
    fn leave(&self, status: Option<StatusWriter>) {
        let Some(status) = status else { return };
        self.conclude();
        status.change(|status| status.term = None);
    }

    fn conclude(&self) {
        let mut progress = self.progress();
        if std::mem::replace(&mut progress.concluded, true) {
            return;
        }
        let begun = progress.begun;
        drop(progress);
        // After a panic of the work, this code runs first, and leadership must be over before any report.
        self.leadership.close();
        if begun
            && let Some(on_stop) = &self.on_stop
            && catch_unwind(AssertUnwindSafe(|| on_stop())).is_err()
        {
            tracing::error!("on_stop_leading panicked; the election goes on");
        }
    }
}

impl std::fmt::Debug for TermEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TermEnd").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

/// The work of an earlier term, which may not have ended with it.
#[derive(Clone, Debug, Default)]
pub(super) struct EarlierWork(Option<Arc<TermEnd>>);

impl EarlierWork {
    /// Returns `true` if no earlier work runs.
    pub(super) fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(|end| end.progress().gone)
    }

    /// Completes when no earlier work runs. Cancellation safe.
    pub(super) async fn ended(&self) {
        let Some(end) = &self.0 else { return };
        // A waiter learns of everything that happens after it was created.
        let gone = end.gone.notified();
        if !self.has_ended() {
            gone.await;
        }
    }
}
