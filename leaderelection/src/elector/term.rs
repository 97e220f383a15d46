//! The work of a term, and how a term ends in the right order in every case (rule 8).

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
    /// The work begins with this function, on a task of its own.
    Task(Start),
    /// The work begins when the caller has the term.
    ForCaller(UnboundedSender<TermGuard>),
}

/// A term from its start until its work has ended. Dropping an `OpenTerm` ends the term: leadership is lost at once, and
/// the task of the work is dropped. Then `on_stop_leading` is called.
#[derive(Debug)]
pub(crate) struct OpenTerm {
    /// The task of the work; `None` if a caller holds the term, because nobody can take it away.
    work: Option<AbortHandle>,
    end: Arc<TermEnd>,
}

impl OpenTerm {
    /// Starts the work on a task of its own, so that the work cannot delay the renewals, or gives the term to the caller
    /// who waits for it.
    pub(crate) fn start(
        leadership: Leadership,
        work: Prepared,
        on_stop: Option<Arc<OnStop>>,
        status: StatusWriter,
    ) -> Self {
        let end = Arc::new(TermEnd {
            leadership,
            on_stop,
            // Without work, every term counts as begun, so that `on_stop_leading` follows each.
            progress: Mutex::new(Progress {
                status: Some(status),
                begun: matches!(work, Prepared::Nothing),
                ..Progress::default()
            }),
            gone: Notify::new(),
        });
        // Created before the task: when a runtime shuts down, it drops tasks that were never polled, and the elector must learn of that,
        // too.
        let guard = WorkGuard { end: Arc::clone(&end), work_end: WorkEnd::Dropped };
        let start = match work {
            Prepared::Nothing => None,
            Prepared::Task(start) => Some(start),
            Prepared::ForCaller(caller) => {
                // A term that nobody waits for any more is dropped here, and ends.
                let _ = caller.send(TermGuard(guard));
                return Self { work: None, end };
            }
        };
        let view = end.leadership.clone();
        let task = async move {
            // The guard is dropped after the work, whether the work completes, panics or is dropped.
            let mut guard = guard;
            let Some(start) = start else { return guard.work_end = WorkEnd::Complete };
            // Any time may have passed since the term started: the process may have been stopped.
            if !view.is_valid() || !guard.end.begin() {
                return guard.work_end = WorkEnd::NotBegun;
            }
            let Done { end, error } = start(view).await;
            guard.work_end = end;
            guard.end.progress.lock().error = error;
        };
        // Nobody joins the task. The guard reports its end, even after an abort.
        let work = spawn(task).abort_handle();
        Self { work: Some(work), end }
    }

    pub(crate) fn leadership(&self) -> &Leadership {
        &self.end.leadership
    }

    /// Returns the next event, if there is one: a command of this process, or the end of the work. When there may be one, the listener of
    /// [`leadership`](Self::leadership) is woken.
    pub(crate) fn next_event(&self) -> Option<Input> {
        let mut progress = self.end.progress.lock();
        // A command closes the window, so it is taken before the end of the work, and is the reason for the end of the term. If the
        // machine has ended the term, the reason is already set.
        let command = if progress.stopped { None } else { self.end.leadership.take_command() };
        if let Some(command) = command {
            return Some(Input::Command(command));
        }
        progress.end_pending.take().map(Input::WorkEnded)
    }

    /// Returns the error with which the work failed, once.
    pub(crate) fn take_error(&self) -> Option<String> {
        self.end.progress.lock().error.take()
    }

    /// Ends leadership, and cancels the work. Returns at once if the work has already ended.
    pub(crate) fn stop(&self) {
        // If nothing has ended the term before, its election is being dropped: the reason is `Cancelled`.
        self.end.leadership.close(TermEndReason::Cancelled);
        let mut progress = self.end.progress.lock();
        progress.stopped = true;
        let leaves = progress.leaves();
        drop(progress);
        // The callback is the program's code, and must not run under the lock.
        self.end.leave(leaves);
    }

    /// Drops the work, unless a caller holds it. The drop takes effect when the work next awaits.
    pub(crate) fn drop_work(&self) {
        if let Some(work) = &self.work {
            work.abort();
        }
    }

    /// Calls `on_stop_leading` although the work still runs, unless the call has been made already.
    pub(crate) fn abandon(&self) {
        self.end.finish();
    }

    /// The work, which may outlive its term.
    pub(crate) fn work(&self) -> PreviousWork {
        PreviousWork(Some(Arc::clone(&self.end)))
    }
}

impl Drop for OpenTerm {
    fn drop(&mut self) {
        self.stop();
        self.drop_work();
    }
}

/// The work of a term that a caller holds instead of a task. The work lasts until this value is dropped.
#[derive(Debug)]
pub(crate) struct TermGuard(WorkGuard);

impl TermGuard {
    /// Begins the work. Returns `None` if the term is over, for example because the process was frozen.
    pub(crate) fn begin(mut self) -> Option<Self> {
        // The window is checked first, because `on_stop_leading` is called after any work that has begun.
        let begins = self.leadership().is_valid() && self.0.end.begin();
        self.0.work_end = if begins { WorkEnd::Complete } else { WorkEnd::NotBegun };
        begins.then_some(self)
    }

    pub(crate) fn leadership(&self) -> &Leadership {
        &self.0.end.leadership
    }

    /// This work, as a later term sees it.
    pub(crate) fn as_earlier(&self) -> PreviousWork {
        PreviousWork(Some(Arc::clone(&self.0.end)))
    }
}

impl Drop for TermGuard {
    fn drop(&mut self) {
        // Leadership ends before the elector learns of the end of the work. A panic is a reason of its own.
        if !std::thread::panicking() {
            self.leadership().step_down();
        }
    }
}

/// Reports to the term that its work has ended.
#[derive(Debug)]
struct WorkGuard {
    end: Arc<TermEnd>,
    /// How the work ends if it ends now without a panic.
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
/// | state | fields of [`Progress`] | the next event, and what follows |
/// |---|---|---|
/// | new | none | `begin`: running; `abandon`: the work never begins; its task is dropped: over |
/// | running | `begun` | `stop`: stopping; the work ends: complete, or over after a panic or a drop |
/// | stopping | `begun`, `stopped` | the work ends: over; `abandon`: abandoned |
/// | complete | `ended`, `gone` | `stop`: over. Until then, the elector leads on without work |
/// | abandoned | `begun`, `stopped`, `concluded` | the work ends: over, without a second call of `on_stop_leading` |
/// | over | `ended`, `concluded`, `gone` | nothing; `end_pending` waits for the elector |
///
/// `concluded` is set before `on_stop_leading` is called, so there is one call at most. `gone` waits for the work, and not for
/// that call if `abandon` makes it.
struct TermEnd {
    leadership: Leadership,
    on_stop: Option<Arc<OnStop>>,
    progress: Mutex<Progress>,
    /// Wakes those who wait until the work no longer runs.
    gone: Notify,
}

#[derive(Debug, Default)]
struct Progress {
    /// The status that shows the term, until the term leaves it.
    status: Option<StatusWriter>,
    /// `true` after the work began. Work that was dropped before it began causes no call of `on_stop_leading`.
    begun: bool,
    /// `true` after the term was stopped.
    stopped: bool,
    ended: Option<WorkEnd>,
    concluded: bool,
    /// `true` if the work no longer runs, and all that follows has happened.
    gone: bool,
    /// The end of the work, until the elector has asked for it.
    end_pending: Option<WorkEnd>,
    /// The error with which the work failed, until the elector has asked for it.
    error: Option<String>,
}

impl Progress {
    /// Returns the status, once, if the term may leave it. If the work ended by itself, the elector continues to lead, and the term stays.
    fn leaves(&mut self) -> Option<StatusWriter> {
        let is_over = match self.ended {
            None => false,
            // Such an end of the work is the end of the term, whether or not the machine has got to it.
            Some(WorkEnd::Panicked | WorkEnd::Dropped) => true,
            Some(_) => self.stopped,
        };
        self.status.take_if(|_| is_over)
    }
}

impl TermEnd {
    /// Lets the work begin. Returns `false` if the work was abandoned before, because nobody would notice its end.
    fn begin(&self) -> bool {
        let mut progress = self.progress.lock();
        progress.begun = !progress.concluded;
        progress.begun
    }

    fn work_ended(&self, end: WorkEnd) {
        let mut progress = self.progress.lock();
        progress.ended = Some(end);
        let leaves = progress.leaves();
        drop(progress);
        // `on_stop_leading` is called before the elector can release the lease.
        self.leave(leaves);
        let mut progress = self.progress.lock();
        (progress.gone, progress.end_pending) = (true, Some(end));
        drop(progress);
        self.leadership.tell_listener();
        self.gone.notify_waiters();
    }

    /// The term stays in the status until now, so that the health check sees work that outlives its lease.
    fn leave(&self, status: Option<StatusWriter>) {
        let Some(status) = status else { return };
        self.finish();
        status.change(|status| status.term = None);
    }

    fn finish(&self) {
        let mut progress = self.progress.lock();
        if std::mem::replace(&mut progress.concluded, true) {
            return;
        }
        let (begun, ended) = (progress.begun, progress.ended);
        drop(progress);
        // After a panic of the work, nothing has closed the window yet, and leadership must be over before any report.
        self.leadership.close(match ended {
            Some(WorkEnd::Panicked) => TermEndReason::WorkPanicked,
            _ => TermEndReason::Cancelled,
        });
        let on_stop = self.on_stop.as_ref().filter(|_| begun);
        if on_stop.is_some_and(|on_stop| catch_unwind(AssertUnwindSafe(|| on_stop(&self.leadership))).is_err()) {
            tracing::error!("on_stop_leading panicked; the election continues");
        }
    }
}

impl std::fmt::Debug for TermEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TermEnd").field("progress", &self.progress.lock()).finish_non_exhaustive()
    }
}

/// The work of an earlier term, which may not have ended with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PreviousWork(Option<Arc<TermEnd>>);

impl PreviousWork {
    /// Returns `true` if no earlier work runs.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(|end| end.progress.lock().gone)
    }

    /// Returns the end of the work, if it was not reported yet.
    #[allow(dead_code, reason = "sessions alone ask, and the proofs build this file without features")]
    pub(crate) fn take_end(&self) -> Option<WorkEnd> {
        self.0.as_ref()?.progress.lock().end_pending.take()
    }

    /// Completes when no earlier work runs. Cancellation safe.
    pub(crate) async fn ended(&self) {
        let Some(end) = &self.0 else { return };
        // A waiter is notified of everything that happens after its creation.
        let gone = end.gone.notified();
        if !self.has_ended() {
            gone.await;
        }
    }
}
