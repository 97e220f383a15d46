//! Runs the work of a term, and ends each term in the order of rule 8, whichever of the term and its work ends first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use crate::config::callbacks::{OnStop, Start};
use crate::config::work_outcome::Done;
use crate::election::{Input, TermEndReason, WorkEnd};
use crate::handle::status::StatusWriter;
use crate::leadership::Leadership;
use crate::util::sync::{AbortHandle, Mutex, Notify, spawn};

/// The work of one term, ready to begin.
pub(crate) enum Prepared {
    /// There is no work to do.
    Nothing,
    /// A task of its own calls this function, which does the work.
    Task(Start),
    /// A caller does the work, which begins when the caller receives the term.
    ForCaller(UnboundedSender<TermGuard>),
}

/// A term that has started, and its work. Dropping an `OpenTerm` ends the term: leadership is lost at once, and the task of the
/// work is dropped. Once the work has ended, `on_stop_leading` is called.
#[derive(Debug)]
pub(crate) struct OpenTerm {
    /// The task of the work; `None` if a caller does the work, which the elector cannot drop.
    work: Option<AbortHandle>,
    end: Arc<TermEnd>,
}

impl OpenTerm {
    /// Starts the work on a task of its own, so that the work cannot delay the renewals. If a caller waits for the term, the
    /// caller gets the term instead.
    pub(crate) fn start(
        leadership: Leadership,
        work: Prepared,
        on_stop: Option<Arc<OnStop>>,
        status: StatusWriter,
    ) -> Self {
        let end = Arc::new(TermEnd {
            leadership,
            on_stop,
            // Without work, `begun` is set at once, so that `on_stop_leading` is called after each term.
            progress: Mutex::new(Progress {
                status: Some(status),
                begun: matches!(work, Prepared::Nothing),
                ..Progress::default()
            }),
            gone: Notify::new(),
        });
        // Created before the task: if a runtime that shuts down drops the task unpolled, the guard reports this, too.
        let guard = WorkGuard { end: Arc::clone(&end), work_end: WorkEnd::Dropped };
        let start = match work {
            Prepared::Nothing => None,
            Prepared::Task(start) => Some(start),
            Prepared::ForCaller(caller) => {
                // If the caller no longer waits, the guard is dropped here, which ends the term.
                let _ = caller.send(TermGuard(guard));
                return Self { work: None, end };
            }
        };
        let view = end.leadership.clone();
        let task = async move {
            // A local variable, so that the guard is dropped after the work, whether the work completes, panics or is dropped.
            let mut guard = guard;
            let Some(start) = start else { return guard.work_end = WorkEnd::Complete };
            // The window may have closed since the term started, e.g. because the process was frozen.
            if !view.is_valid() || !guard.end.begin() {
                return guard.work_end = WorkEnd::NotBegun;
            }
            let Done { end, error } = start(view).await;
            guard.work_end = end;
            guard.end.progress.lock().error = error;
        };
        // Nobody joins the task, because the guard reports the end of the work, even after an abort.
        let work = spawn(task).abort_handle();
        Self { work: Some(work), end }
    }

    pub(crate) fn leadership(&self) -> &Leadership {
        &self.end.leadership
    }

    /// Returns the next event of the term, if there is one: a command from within this process, or the end of the work. The
    /// [`TermListener`](crate::leadership::TermListener) is woken for each event.
    pub(crate) fn next_event(&self) -> Option<Input> {
        let mut progress = self.end.progress.lock();
        // A command comes before the end of the work: the command has closed the window, so it is the reason for the end of the term. Once
        // the machine has stopped the term, the reason is known, and a command no longer counts.
        let command = if progress.stopped { None } else { self.end.leadership.take_command() };
        if let Some(command) = command {
            return Some(Input::Command(command));
        }
        progress.end_pending.take().map(Input::WorkEnded)
    }

    /// The error with which the work failed.
    pub(crate) fn error(&self) -> Option<String> {
        self.end.progress.lock().error.clone()
    }

    /// Ends leadership, and tells the work to stop. If the work has already ended, calls `on_stop_leading`.
    pub(crate) fn stop(&self) {
        // If the machine has ended the term, its reason is already set. Otherwise, the election is being dropped.
        self.end.leadership.close(TermEndReason::Cancelled);
        let mut progress = self.end.progress.lock();
        progress.stopped = true;
        let status = progress.take_status_if_over();
        drop(progress);
        // The callback is the program's code, and must not run under the lock.
        self.end.leave(status);
    }

    /// Drops the work when it next awaits. Work that a caller does is not dropped.
    pub(crate) fn drop_work(&self) {
        if let Some(work) = &self.work {
            work.abort();
        }
    }

    /// Calls `on_stop_leading` although the work still runs, unless the call was already made.
    pub(crate) fn abandon(&self) {
        self.end.finish();
    }

    /// Returns a view of this work, so that a later term can wait until the work has ended.
    pub(crate) fn as_earlier(&self) -> PreviousWork {
        PreviousWork(Some(Arc::clone(&self.end)))
    }
}

impl Drop for OpenTerm {
    fn drop(&mut self) {
        self.stop();
        self.drop_work();
    }
}

/// The work of a term, if a caller does the work instead of a task. The work lasts until this value is dropped.
#[derive(Debug)]
pub(crate) struct TermGuard(WorkGuard);

impl TermGuard {
    /// Begins the work. Returns `None` if the term is over, for example because the process was frozen.
    pub(crate) fn begin(mut self) -> Option<Self> {
        // The window is checked first: once `begin` has marked the work as begun, `on_stop_leading` will be called.
        let begins = self.leadership().is_valid() && self.0.end.begin();
        self.0.work_end = if begins { WorkEnd::Complete } else { WorkEnd::NotBegun };
        begins.then_some(self)
    }

    pub(crate) fn leadership(&self) -> &Leadership {
        &self.0.end.leadership
    }

    /// See [`OpenTerm::as_earlier`].
    pub(crate) fn as_earlier(&self) -> PreviousWork {
        PreviousWork(Some(Arc::clone(&self.0.end)))
    }
}

impl Drop for TermGuard {
    fn drop(&mut self) {
        // Leadership ends before the inner guard reports the end of the work. After a panic, this report ends the term.
        if !std::thread::panicking() {
            self.leadership().step_down();
        }
    }
}

/// Reports the end of the work to the term when this value is dropped.
#[derive(Debug)]
struct WorkGuard {
    end: Arc<TermEnd>,
    /// What to report if this value is dropped now without a panic.
    work_end: WorkEnd,
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        let work_end = if std::thread::panicking() { WorkEnd::Panicked } else { self.work_end };
        self.end.work_ended(work_end);
    }
}

/// The end of a term, to which both its elector and its work contribute, in either order.
///
/// | state | fields of [`Progress`] that are set | next event: next state |
/// |---|---|---|
/// | new | none | `begin`: running. Otherwise as in the state running |
/// | running | `begun` | `stop`: stopping. The work ends: complete, or over after a panic or a drop |
/// | stopping | `stopped`; `begun` if the work began | the work ends: over. `abandon`: abandoned |
/// | complete | `ended`, `gone`; `begun` if the work began | `stop`: over. Until then, the elector leads without work |
/// | abandoned | `stopped`, `concluded`; `begun` if the work began | the work ends: over, without a second call of `on_stop_leading` |
/// | over | `ended`, `concluded`, `gone` | none. `end_pending` stays until the elector takes it |
///
/// `concluded` is set before `on_stop_leading` is called, so there is at most one call. `gone` is set once the work has ended. If this end
/// causes the call, `gone` is set after it. Otherwise, `stop` makes the call later, or `abandon` has made it before. There is no
/// call if the work never began.
struct TermEnd {
    leadership: Leadership,
    on_stop: Option<Arc<OnStop>>,
    progress: Mutex<Progress>,
    /// Notified when the field `gone` of the progress is set.
    gone: Notify,
}

#[derive(Debug, Default)]
struct Progress {
    /// The status that shows the term; `None` once the term is removed from it.
    status: Option<StatusWriter>,
    /// `true` once the work has begun. Otherwise, `on_stop_leading` is not called.
    begun: bool,
    /// `true` once the term was stopped.
    stopped: bool,
    /// How the work ended.
    ended: Option<WorkEnd>,
    /// `true` once [`TermEnd::finish`] has begun, which makes the only call of `on_stop_leading`.
    concluded: bool,
    /// `true` once the work has ended. If this end causes the call of `on_stop_leading`, set after the call.
    gone: bool,
    /// The end of the work, until the elector takes it.
    end_pending: Option<WorkEnd>,
    /// The error with which the work failed.
    error: Option<String>,
}

impl Progress {
    /// Takes the status, to remove the term from it, if both the term and its work have ended.
    fn take_status_if_over(&mut self) -> Option<StatusWriter> {
        let is_over = match self.ended {
            None => false,
            // A panic or a drop of the work ends the term, even if the machine has not handled it yet.
            Some(WorkEnd::Panicked | WorkEnd::Dropped) => true,
            Some(_) => self.stopped,
        };
        self.status.take_if(|_| is_over)
    }
}

impl TermEnd {
    /// Lets the work begin. Returns `false` if the work was abandoned before, because `on_stop_leading` could no longer follow it.
    fn begin(&self) -> bool {
        let mut progress = self.progress.lock();
        progress.begun = !progress.concluded;
        progress.begun
    }

    fn work_ended(&self, end: WorkEnd) {
        let mut progress = self.progress.lock();
        progress.ended = Some(end);
        let status = progress.take_status_if_over();
        drop(progress);
        // First, because this calls `on_stop_leading`, and the elector may release the lease once `gone` is set.
        self.leave(status);
        let mut progress = self.progress.lock();
        (progress.gone, progress.end_pending) = (true, Some(end));
        drop(progress);
        self.leadership.tell_listener();
        self.gone.notify_waiters();
    }

    /// Calls `on_stop_leading`, then removes the term from the status. Without a status, does nothing. The term is not removed while its
    /// work runs, so that the health check sees work that outlives its lease.
    fn leave(&self, status: Option<StatusWriter>) {
        let Some(status) = status else { return };
        self.finish();
        status.change(|status| status.term = None);
    }

    /// Calls `on_stop_leading`, unless it was called before.
    fn finish(&self) {
        let mut progress = self.progress.lock();
        if std::mem::replace(&mut progress.concluded, true) {
            return;
        }
        let (begun, ended, error) = (progress.begun, progress.ended, progress.error.clone());
        drop(progress);
        // Leadership ends before the callback. If the work panicked or was dropped, perhaps nothing else has closed the window yet.
        self.leadership.close(match ended {
            Some(WorkEnd::Panicked) => TermEndReason::WorkPanicked,
            _ => TermEndReason::Cancelled,
        });
        let on_stop = self.on_stop.as_ref().filter(|_| begun);
        if on_stop.is_some_and(|on_stop| {
            catch_unwind(AssertUnwindSafe(|| on_stop(&self.leadership, error.as_deref()))).is_err()
        }) {
            tracing::error!("on_stop_leading panicked; the election continues");
        }
    }
}

impl std::fmt::Debug for TermEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TermEnd").field("progress", &self.progress.lock()).finish_non_exhaustive()
    }
}

/// The work of an earlier term, which may outlive that term.
#[derive(Clone, Debug, Default)]
pub(crate) struct PreviousWork(Option<Arc<TermEnd>>);

impl PreviousWork {
    /// Returns `true` if no earlier work runs.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(|end| end.progress.lock().gone)
    }

    /// Takes the end of the work, if the elector of its term has not taken it.
    #[allow(dead_code, reason = "only sessions call it, and the proofs build this file without features")]
    pub(crate) fn take_end(&self) -> Option<WorkEnd> {
        self.0.as_ref()?.progress.lock().end_pending.take()
    }

    /// Completes when no earlier work runs. Cancellation safe.
    pub(crate) async fn ended(&self) {
        let Some(end) = &self.0 else { return };
        // Created before the check, because a waiter is notified only of what happens after its creation.
        let gone = end.gone.notified();
        if !self.has_ended() {
            gone.await;
        }
    }
}
