//! The functions that an elector calls when leadership comes and goes.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use crate::config::work_outcome::{Done, WorkOutcome};
use crate::leadership::Leadership;
use crate::term::TermEndReason;
use crate::util::last_resort;

/// How long a process that exits waits for its log to accept the last line.
const LAST_LINE_TIMEOUT: Duration = Duration::from_secs(1);

/// The work of a term. Its output says how the work ended.
pub(crate) type Work = Pin<Box<dyn Future<Output = Done> + Send>>;
/// Starts the work of one term.
pub(crate) type Start = Box<dyn FnOnce(Leadership) -> Work + Send>;
pub(crate) type OnStart = dyn Fn(Leadership) -> Work + Send + Sync;
/// Called with the ended term, and with the error of its work if the work failed.
pub(crate) type OnStop = dyn Fn(&Leadership, Option<&str>) + Send + Sync;
pub(crate) type OnNewLeader = dyn Fn(&str) + Send + Sync;

/// The functions that an elector calls, client-go's `LeaderCallbacks`. All are optional.
///
/// ```
/// use leaderelection::{Leadership, LeaderCallbacks};
///
/// let callbacks = LeaderCallbacks::new()
///     .on_start_leading(|leadership: Leadership| async move {
///         while leadership.is_valid() {
///             // ... lead ...
///             # break;
///         }
///     })
///     .on_stop_leading(|| println!("stopped leading"))
///     .on_new_leader(|identity| println!("{identity} leads"));
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct LeaderCallbacks {
    pub(crate) on_start_leading: Option<Arc<OnStart>>,
    pub(crate) on_stop_leading: Option<Arc<OnStop>>,
    pub(crate) on_new_leader: Option<Arc<OnNewLeader>>,
    exits_on_loss: bool,
}

impl LeaderCallbacks {
    /// Creates a set without callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the leader's work, which starts with every term on its own task.
    ///
    /// All work of the term has to end with this future. Tasks that it spawns, such as the controllers of an operator,
    /// outlive it, and would work beside the next leader. Choose one of two ways: *await the tasks* in this future, and
    /// tell each to stop when the term ends (kube-rs:
    /// `graceful_shutdown_on(leadership.cancellation_token().cancelled_owned())`), or *exit the process* with
    /// [`exit_on_loss`](Self::exit_on_loss), as programs on client-go do.
    ///
    /// The future should end soon after [`Leadership::lost`] completes. If it does not, it is dropped shortly before
    /// another candidate may take the lease. A future that never awaits cannot be dropped. If the future returns `()`
    /// or `Ok` during the term, the elector continues to lead, as in client-go. A panic ends the term.
    ///
    /// Work that fails returns an error of any type that becomes a [`Box<dyn Error>`](std::error::Error): see
    /// [`WorkOutcome`]. The elector logs the error with its causes, ends the term with
    /// [`TermEndReason::WorkFailed`](crate::TermEndReason::WorkFailed), and releases the lease. A
    /// [`campaign`](crate::Elector::campaign) then lets other candidates go first for
    /// [the cool-down](crate::LeaderElectionConfigBuilder::step_down_cool_down).
    pub fn on_start_leading<F, W>(mut self, work: F) -> Self
    where
        F: Fn(Leadership) -> W + Send + Sync + 'static,
        W: Future<Output: WorkOutcome> + Send + 'static,
    {
        self.on_start_leading = Some(Arc::new(move |leadership| {
            // `map` keeps the future small: an `async` block would store the work twice.
            Box::pin(work(leadership).map(Done::of))
        }));
        self
    }

    /// Sets the function that is called once at the end of every term whose work began, after the work has ended and
    /// before the lease is released. Work begins when it is first polled. It never begins if the term ends or the
    /// election is dropped before that. Without [`on_start_leading`](Self::on_start_leading), all work counts as begun.
    ///
    /// If the work does not end even when it is dropped, the function is called when the lease is about to expire. A
    /// process that must not outlive its lease can then exit. Keep the function short: it runs on a runtime thread.
    pub fn on_stop_leading(mut self, stopped: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_stop_leading = Some(Arc::new(move |_, _| stopped()));
        self
    }

    /// Exits the process with code 1 when leadership is lost, after [`on_stop_leading`](Self::on_stop_leading). This is
    /// for work that has spawned tasks and does not await them. Your orchestrator restarts the process.
    ///
    /// Every end of a term counts as a loss, except when the election is stopped, or the work of `run_while_leading` or
    /// `run_once` completes. A transfer is a loss, too, because the spawned tasks would work beside the next leader.
    /// After a loss, the lease is not released but expires, because the tasks work until the exit.
    ///
    /// In a [`Session`](crate::Session), the loss of any lock exits the process, which ends all its other terms.
    /// Therefore do not combine this setting with [`balance`](crate::SessionBuilder::balance), which hands locks over.
    /// The process does not exit while a call of `on_stop_leading` runs, or if the election's future is dropped.
    ///
    /// ```no_run
    /// # async fn controller(leadership: leaderelection::Leadership) {}
    /// # async fn another(leadership: leaderelection::Leadership) {}
    /// use leaderelection::{LeaderCallbacks, Leadership};
    ///
    /// let callbacks = LeaderCallbacks::new()
    ///     .on_start_leading(|leadership: Leadership| async move {
    ///         tokio::spawn(controller(leadership.clone()));
    ///         tokio::spawn(another(leadership.clone()));
    ///         leadership.lost().await;
    ///     })
    ///     .exit_on_loss();
    /// ```
    ///
    /// When the election is stopped, the process does not exit, and the lease is released once the future ends. So the
    /// future has to end the spawned tasks first, which this example leaves out.
    pub fn exit_on_loss(mut self) -> Self {
        self.exits_on_loss = true;
        self
    }

    /// Returns the function for the end of a term: it calls `on_stop_leading`, and may exit the process after a loss.
    pub(crate) fn at_the_end(&self) -> Option<Arc<OnStop>> {
        if !self.exits_on_loss {
            return self.on_stop_leading.clone();
        }
        let stopped = self.on_stop_leading.clone();
        Some(Arc::new(move |leadership, error| {
            if let Some(stopped) = &stopped {
                // If the program's function panics, the process must exit all the same.
                let _ = catch_unwind(AssertUnwindSafe(|| stopped(leadership, error)));
            }
            match leadership.end_reason() {
                None | Some(TermEndReason::Cancelled | TermEndReason::WorkFinished) => {}
                Some(reason) => {
                    let fencing_token = u64::from(leadership.fencing_token());
                    // With the error: the process may exit before standard error has the line of `log::work_failed`.
                    let reason = match error {
                        Some(error) if *reason == TermEndReason::WorkFailed => format!("{reason}: {error}"),
                        _ => reason.to_string(),
                    };
                    // If the log blocks or panics, the process must exit all the same.
                    let _ = std::thread::Builder::new().spawn(|| {
                        std::thread::sleep(LAST_LINE_TIMEOUT);
                        std::process::exit(1)
                    });
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        tracing::error!(fencing_token, reason, "leadership is lost, and the process ends");
                        last_resort::tell_now("leadership is lost, and the process ends", reason);
                    }));
                    std::process::exit(1);
                }
            }
        }))
    }

    /// Sets the function that is called with the identity of every new leader, including this elector, in order and one
    /// call at a time.
    ///
    /// The function runs on a separate thread, inside the runtime's context, and may block. Neither a renewal nor the
    /// end of the election, the runtime or the program waits for the function. While a call is in flight, the newest 16
    /// leaders are queued; older ones are skipped, and the log says so.
    pub fn on_new_leader(mut self, elected: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_new_leader = Some(Arc::new(elected));
        self
    }
}

/// No callbacks.
impl From<()> for LeaderCallbacks {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl fmt::Debug for LeaderCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderCallbacks")
            .field("on_start_leading", &self.on_start_leading.is_some())
            .field("on_stop_leading", &self.on_stop_leading.is_some())
            .field("on_new_leader", &self.on_new_leader.is_some())
            .field("exits_on_loss", &self.exits_on_loss)
            .finish()
    }
}
