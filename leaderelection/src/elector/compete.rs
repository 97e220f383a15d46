//! The operations of one kind of elector, on which the methods of [`Elector`](super::Elector) are built.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use super::run_error::ElectionError;
use super::terms::Terms;
use super::work::StartWork;
use crate::clock::Clock;
use crate::config::callbacks::OnStart;
use crate::election::{RunOutcome, TermEndReason};
use crate::util::stop::{self, OwnedStop, Stop};

/// The operations of one kind of elector, on which the methods of [`Elector`](super::Elector) are built.
pub(crate) trait Compete: Debug + Send + Sync + Sized + 'static {
    /// Competes, leads one term, and returns. Lets other candidates go first for `stand_back`.
    fn compete<'a>(
        &'a self,
        stop: Stop<'a>,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = Result<RunOutcome, ElectionError>> + Send + 'a;

    /// Like `compete`, but the future does not borrow the elector, and returns `stop` for the next candidacy.
    fn candidacy(
        &self,
        stop: OwnedStop,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = (Result<RunOutcome, ElectionError>, OwnedStop)> + Send + 'static;

    /// Adds what an election needs around it, such as a span, and the wait for the last write of the history.
    fn whole<T: Send, F: Future<Output = T> + Send>(&self, election: F) -> impl Future<Output = T> + Send;

    fn cool_down(&self) -> Duration;

    fn on_start(&self) -> Option<&Arc<OnStart>>;

    fn terms(&self) -> &Terms;

    fn clock(&self) -> &Arc<dyn Clock>;
}

/// Campaigns with an elector. `is_claimed` is `true` if the caller has already claimed the elector.
///
/// One async block: nested blocks would store their state twice.
pub(super) fn campaigning<E: Compete>(
    elector: &E,
    mut shutdown: OwnedStop,
    is_claimed: bool,
) -> impl Future<Output = Result<(), ElectionError>> + Send {
    elector.whole(async move {
        let _claim = if is_claimed { None } else { Some(elector.terms().claim_alone()?) };
        let mut stand_back = Duration::ZERO;
        while !stop::is_requested(shutdown.as_mut()).await {
            let work = StartWork::Callback(elector.on_start().cloned());
            let outcome = elector.compete(shutdown.as_mut(), work, stand_back).await?;
            // Without a cool-down, the former leader would win each time, because it is the first to know that the lock is free.
            let cools_down = outcome.reason().is_some_and(TermEndReason::cools_down);
            stand_back = if cools_down { elector.cool_down() } else { Duration::ZERO };
        }
        Ok(())
    })
}

/// Rejects a call of `method`, whose caller does the leader's work, if a callback would do that work, too.
pub(super) fn require_no_callback(elector: &impl Compete, method: &'static str) -> Result<(), ElectionError> {
    match elector.on_start() {
        Some(_) => Err(ElectionError::CallbackIsSet { method }),
        None => Ok(()),
    }
}
