//! Terms that a caller holds as values, for callers who do the leader's work themselves.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::run_error::ElectionError;
use super::term::{PreviousWork, TermGuard};
use super::work::StartWork;
use crate::clock::{Clock, LocalInstant};
use crate::election::{RunOutcome, TermEndReason};
use crate::leadership::Leadership;
use crate::util::stop::{self, OwnedStop, Stop};
use crate::util::sync::Mutex;

/// A term that the caller of an elector holds as a value, with the methods of [`Leadership`].
///
/// While you hold the `Term`, do the leader's work. Meanwhile the elector renews the lease on a task of its own, on the
/// runtime on which the term was won. For a session's lock, the session renews its own lease. The work is over when the
/// `Term` is dropped. Drop the `Term` soon after [`lost`](Leadership::lost) completes: while you hold it, the elector
/// neither releases the lease nor competes again.
///
/// Dropping a `Term` ends leadership at once, before any request is sent, as [`Leadership::step_down`] does. The task of the elector then
/// calls `on_stop_leading` and releases the lease. If the program exits or the runtime is dropped before that, the lease has to expire.
/// [`release`](Self::release) waits for the task.
///
/// A `Term` that is dropped by a panic ends for [`TermEndReason::WorkPanicked`], like work that panics.
#[derive(Debug)]
#[must_use = "leadership ends when the term is dropped"]
pub struct Term {
    work: TermGuard,
    ending: Arc<Ending>,
}

impl Term {
    /// Ends leadership at once, and waits until the lease is released, or cannot be released in time.
    ///
    /// The wait ends at the latest when the lease has expired. If the returned future is dropped, leadership ends as well, and the release
    /// continues in the background.
    pub async fn release(self) {
        let Self { work, ending } = self;
        drop(work);
        ending.over.cancelled().await;
    }
}

impl Deref for Term {
    type Target = Leadership;

    fn deref(&self) -> &Leadership {
        self.work.leadership()
    }
}

/// The end of a term that a caller has held.
#[derive(Debug, Default)]
struct Ending {
    /// The work of the caller, which ends when the caller drops the term.
    work: PreviousWork,
    /// Cancelled once the lease is released, or will not be released.
    over: CancellationToken,
    /// When the term ended, if a cool-down follows.
    cools_since: OnceLock<LocalInstant>,
}

impl Ending {
    fn ended(&self, outcome: &RunOutcome, clock: &dyn Clock) {
        if outcome.reason().is_some_and(TermEndReason::cools_down) {
            self.cools_since.get_or_init(|| clock.now());
        }
    }

    /// Returns how much longer other candidates go first.
    fn stand_back(&self, cool_down: Duration, clock: &dyn Clock) -> Duration {
        self.cools_since.get().map_or(Duration::ZERO, |since| (*since + cool_down).saturating_since(clock.now()))
    }
}

/// The terms that an elector returns to its callers.
///
/// This type is small, because a process may have ten thousand electors, each with one.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    last: Mutex<Option<Arc<Ending>>>,
    /// `true` while a call has claimed the elector.
    is_claimed: AtomicBool,
}

/// Reserves the elector for one call, until this value is dropped.
pub(super) struct Claim<'a>(&'a AtomicBool);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Terms {
    /// Returns the next term. `compete` begins a candidacy for one term, and lets other candidates go first for the given
    /// time. Returns `None` once `stop` completes, but not before the lease of a dropped term is released.
    pub(super) async fn next<R>(
        &self,
        mut stop: OwnedStop,
        clock: &Arc<dyn Clock>,
        cool_down: impl Fn() -> Duration,
        compete: impl Fn(OwnedStop, StartWork, Duration) -> R,
    ) -> Result<Option<Term>, ElectionError>
    where
        R: Future<Output = (Result<RunOutcome, ElectionError>, OwnedStop)> + Send + 'static,
    {
        let mut ending = self.end_of_last(stop.as_mut()).await;
        while !stop::is_requested(stop.as_mut()).await {
            // The cool-down counts from the end of the term and not from this call, which may come much later.
            let stand_back = ending.stand_back(cool_down(), &**clock);
            match self.compete(clock, false, |work| compete(stop, work, stand_back)).await? {
                Ok(term) => return Ok(Some(term)),
                Err((outcome, unused)) => {
                    // Whether a cool-down follows depends only on the candidacy that ended last.
                    ending = Arc::default();
                    ending.ended(&outcome, &**clock);
                    stop = unused;
                }
            }
        }
        Ok(None)
    }

    /// Reserves the elector for one call, even if the release of a dropped term is still in flight.
    ///
    /// # Errors
    ///
    /// If another call has claimed the elector.
    pub(super) fn claim(&self) -> Result<Claim<'_>, ElectionError> {
        // Fails instead of waiting, because a wait could take days, and nobody would see why.
        if self.is_claimed.swap(true, Ordering::Acquire) {
            return Err(ElectionError::AlreadyRunning);
        }
        Ok(Claim(&self.is_claimed))
    }

    /// Reserves the elector for one call, which must not begin while a caller holds a term.
    ///
    /// # Errors
    ///
    /// If another call has claimed the elector, or a caller still holds a term of the elector.
    pub(super) fn claim_alone(&self) -> Result<Claim<'_>, ElectionError> {
        let claim = self.claim()?;
        match self.last.lock().as_ref() {
            Some(last) if !last.work.has_ended() => Err(ElectionError::AlreadyRunning),
            _ => Ok(claim),
        }
    }

    /// Competes until a term begins, and returns the term. If the candidacy ends without a term, returns its outcome and `stop`.
    pub(super) async fn compete<R>(
        &self,
        clock: &Arc<dyn Clock>,
        one_attempt: bool,
        compete: impl FnOnce(StartWork) -> R,
    ) -> Result<Result<Term, (RunOutcome, OwnedStop)>, ElectionError>
    where
        R: Future<Output = (Result<RunOutcome, ElectionError>, OwnedStop)> + Send + 'static,
    {
        let (caller, mut terms) = unbounded_channel();
        let mut run = Box::pin(compete(StartWork::ForCaller { caller, one_attempt }));
        let work = tokio::select! {
            biased;
            // The run is polled first, so that the poll in which a term begins also returns the term. Otherwise, the term would be
            // lost if the caller dropped this future between two polls.
            (outcome, stop) = &mut run => return Ok(Err((outcome?, stop))),
            work = first_valid(&mut terms) => work,
        };
        let ending = Arc::new(Ending { work: work.as_earlier(), ..Ending::default() });
        // Set before the term is returned, so that the next call waits for this term's release.
        *self.last.lock() = Some(Arc::clone(&ending));
        let (clock, term) = (Arc::clone(clock), Term { work, ending: Arc::clone(&ending) });
        // Created before the task: if the runtime drops the task, even before its first poll, a later call must not wait forever.
        let over = ending.over.clone().drop_guard();
        // On a task, because a caller who holds the term no longer polls the election, and the lease must be renewed.
        tokio::spawn(async move {
            let _over = over;
            if let (Ok(outcome), _) = run.await {
                ending.ended(&outcome, &*clock);
            }
        });
        Ok(Ok(term))
    }

    /// Waits until the last term is over. Once `stop` completes, waits only for the release of a term that was dropped.
    async fn end_of_last(&self, stop: Stop<'_>) -> Arc<Ending> {
        let Some(ending) = self.last.lock().clone() else { return Arc::default() };
        tokio::select! {
            () = ending.over.cancelled() => {}
            () = stop::requested(stop) => {
                // The caller may exit the program next. Without this wait, the lease of a dropped term would then have to expire.
                if ending.work.has_ended() {
                    ending.over.cancelled().await;
                }
            }
        }
        ending
    }
}

/// Returns the first term whose window is still open when the term arrives.
async fn first_valid(terms: &mut UnboundedReceiver<TermGuard>) -> TermGuard {
    loop {
        match terms.recv().await.map(TermGuard::begin) {
            Some(Some(work)) => return work,
            // The window has closed before this poll, because the process was frozen. The candidacy continues.
            Some(None) => {}
            // The candidacy has ended, and the caller of this function gets the outcome from the run.
            None => std::future::pending().await,
        }
    }
}
