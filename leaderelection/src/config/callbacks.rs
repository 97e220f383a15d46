//! The functions that an elector calls when leadership comes and goes.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::config::work_outcome::{Done, WorkOutcome};
use crate::leadership::Leadership;

/// The work of a term. The output tells how the work ended.
pub(crate) type Work = Pin<Box<dyn Future<Output = Done> + Send>>;
/// Starts a term's work.
pub(crate) type Start = Box<dyn FnOnce(Leadership) -> Work + Send>;
pub(crate) type OnStart = dyn Fn(Leadership) -> Work + Send + Sync;
pub(crate) type OnStop = dyn Fn() + Send + Sync;
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
}

impl LeaderCallbacks {
    /// Creates a set without callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the leader's work, which runs on a task of its own from the start of every term.
    ///
    /// The future should end soon after [`Leadership::lost`] completes. A future that does not end is dropped shortly
    /// before another candidate may take the lease. A future that never awaits cannot be dropped. If the future ends by
    /// itself with `()` or `Ok`, the elector continues to lead, as in client-go. A panic ends the term.
    ///
    /// Work that cannot be done returns an error, of any type that becomes a
    /// [`Box<dyn Error>`](std::error::Error): see [`WorkOutcome`]. The elector logs the error with its causes, ends the
    /// term with [`TermEndReason::WorkFailed`](crate::TermEndReason::WorkFailed), and releases the lease. In a
    /// [`campaign`](crate::Elector::campaign), other candidates then go first for
    /// [the cool-down](crate::LeaderElectionConfigBuilder::step_down_cool_down).
    pub fn on_start_leading<F, W>(mut self, work: F) -> Self
    where
        F: Fn(Leadership) -> W + Send + Sync + 'static,
        W: Future<Output: WorkOutcome> + Send + 'static,
    {
        self.on_start_leading = Some(Arc::new(move |leadership| {
            // A future that awaits the work would hold the work twice.
            Box::pin(work(leadership).map(Done::of))
        }));
        self
    }

    /// Sets the function that is called once at the end of every term whose work began. The call comes after
    /// the work has ended and before the lease is released. Work that was never polled, because the term ended
    /// or the election was dropped too soon, has neither begun nor stopped. Without
    /// [`on_start_leading`](Self::on_start_leading), every term counts as begun.
    ///
    /// If the work cannot be ended, the function is still called when the lease is about to expire, so that a
    /// process that must not outlive its lease can exit here. The function runs on a runtime thread: keep it
    /// short.
    pub fn on_stop_leading(mut self, stopped: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_stop_leading = Some(Arc::new(stopped));
        self
    }

    /// Sets the function that is called with the identity of every new leader, this elector included, in order
    /// and one call at a time.
    ///
    /// The function runs on a thread of its own, inside the runtime's context, and may block. Renewals, the end of the
    /// election and the end of the runtime do not wait for it, and a program that ends does not either. While a call is
    /// in flight, the newest 16 leaders wait for their calls; the calls of older ones are left out, and the log says so.
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
            .finish()
    }
}
