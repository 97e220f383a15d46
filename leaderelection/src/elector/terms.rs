//! Terms that a caller holds as values, instead of work that an elector calls.

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

/// A term of leadership that its owner holds, with the methods of [`Leadership`].
///
/// While you hold the `Term`, do the leader's work. Meanwhile the elector renews the lease on its own task, on the runtime on which the
/// term was won; the run of a session renews its locks. The work is over when the `Term` is dropped, so drop it soon after
/// [`lost`](Leadership::lost) completes: until then the elector neither releases the lease nor competes again.
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
    /// It waits at most until the lease has expired. Dropping the returned future ends leadership as well, and the release continues in
    /// the background.
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
    /// The guard in the caller's term.
    work: PreviousWork,
    /// Cancelled when the lease was released, or will not be.
    over: CancellationToken,
    /// When the last term ended, if other candidates go first after it.
    cools_since: OnceLock<LocalInstant>,
}

impl Ending {
    fn ended(&self, outcome: &RunOutcome, clock: &dyn Clock) {
        if outcome.reason().is_some_and(TermEndReason::cools_down) {
            self.cools_since.get_or_init(|| clock.now());
        }
    }

    /// How much longer other candidates go first.
    fn stand_back(&self, cool_down: Duration, clock: &dyn Clock) -> Duration {
        self.cools_since.get().map_or(Duration::ZERO, |since| (*since + cool_down).saturating_since(clock.now()))
    }
}

/// The terms that an elector returns to its callers.
///
/// It is small, because a process may have ten thousand electors, each with one.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    last: Mutex<Option<Arc<Ending>>>,
    /// `true` while a call of the elector has not ended.
    is_claimed: AtomicBool,
}

/// The elector, in use by one call until this value is dropped.
pub(super) struct Claim<'a>(&'a AtomicBool);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Terms {
    /// Returns the next term. `compete` begins a candidacy for one term, which lets others go first for the given time.
    /// Returns `None` when the caller has asked to stop, but not before the lease of a dropped term is released.
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
            // Counted from the end of the term and not from this call: the caller may have done other things
            // meanwhile.
            let stand_back = ending.stand_back(cool_down(), &**clock);
            match self.compete(clock, false, |work| compete(stop, work, stand_back)).await? {
                Ok(term) => return Ok(Some(term)),
                Err((outcome, unused)) => {
                    // Only after the last candidacy has ended is it known whether others go first.
                    ending = Arc::default();
                    ending.ended(&outcome, &**clock);
                    stop = unused;
                }
            }
        }
        Ok(None)
    }

    /// Takes the elector for one call. The release of a dropped term may still be in progress.
    ///
    /// # Errors
    ///
    /// If another call has the elector.
    pub(super) fn claim(&self) -> Result<Claim<'_>, ElectionError> {
        // Fails instead of waiting, because a wait could take days, and nobody would see why.
        if self.is_claimed.swap(true, Ordering::Acquire) {
            return Err(ElectionError::AlreadyRunning);
        }
        Ok(Claim(&self.is_claimed))
    }

    /// Takes the elector for one call that leads a term itself.
    ///
    /// # Errors
    ///
    /// If another call has the elector, or a caller still holds a term of it.
    pub(super) fn claim_alone(&self) -> Result<Claim<'_>, ElectionError> {
        let claim = self.claim()?;
        match self.last.lock().as_ref() {
            Some(last) if !last.work.has_ended() => Err(ElectionError::AlreadyRunning),
            _ => Ok(claim),
        }
    }

    /// Competes until a term begins, and returns the term, or the outcome of the candidacy without a term, and its order to stop.
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
            // The run is polled first: a term that begins in a poll is then returned by the same poll, so that none
            // is lost when the caller drops this future.
            (outcome, stop) = &mut run => return Ok(Err((outcome?, stop))),
            work = first_valid(&mut terms) => work,
        };
        let ending = Arc::new(Ending { work: work.as_earlier(), ..Ending::default() });
        // Set before the term is returned, so that the next call waits for this term's release.
        *self.last.lock() = Some(Arc::clone(&ending));
        let (clock, term) = (Arc::clone(clock), Term { work, ending: Arc::clone(&ending) });
        // The runtime may drop the task, even before its first poll, and nobody may wait for it then.
        let over = ending.over.clone().drop_guard();
        // A caller who holds the term does not poll the election, but the lease must be renewed.
        tokio::spawn(async move {
            let _over = over;
            if let (Ok(outcome), _) = run.await {
                ending.ended(&outcome, &*clock);
            }
        });
        Ok(Ok(term))
    }

    /// Waits for the end of the last term. A cancelled caller waits only if nobody holds that term, because a program that exits next
    /// would not wait for the release.
    async fn end_of_last(&self, stop: Stop<'_>) -> Arc<Ending> {
        let Some(ending) = self.last.lock().clone() else { return Arc::default() };
        tokio::select! {
            () = ending.over.cancelled() => {}
            () = stop::requested(stop) => {
                // A caller that gets `None` may exit the program. Then the lease of a dropped term would have to expire.
                if ending.work.has_ended() {
                    ending.over.cancelled().await;
                }
            }
        }
        ending
    }
}

/// The first term that is valid when its caller gets it.
async fn first_valid(terms: &mut UnboundedReceiver<TermGuard>) -> TermGuard {
    loop {
        match terms.recv().await.map(TermGuard::begin) {
            Some(Some(work)) => return work,
            // The process was frozen between the win and this poll, and the window has closed. The candidacy continues.
            Some(None) => {}
            // The candidacy has ended, and its outcome is there.
            None => std::future::pending().await,
        }
    }
}
