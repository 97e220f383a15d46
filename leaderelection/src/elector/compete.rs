//! The parts of an elector from which its methods are made.

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

/// The parts of an elector from which its methods are made.
pub(crate) trait Compete: Debug + Send + Sync + Sized + 'static {
    /// A candidacy for one term, which lets others go first for `stand_back`.
    fn compete<'a>(
        &'a self,
        stop: Stop<'a>,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = Result<RunOutcome, ElectionError>> + Send + 'a;

    /// A candidacy for one term that outlives the call, and if necessary the elector. It returns the future that ends it.
    fn candidacy(
        &self,
        stop: OwnedStop,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = (Result<RunOutcome, ElectionError>, OwnedStop)> + Send + 'static;

    /// A whole election, with what happens before and after it.
    fn whole<T: Send, F: Future<Output = T> + Send>(&self, election: F) -> impl Future<Output = T> + Send;

    fn cool_down(&self) -> Duration;

    fn on_start(&self) -> Option<&Arc<OnStart>>;

    fn terms(&self) -> &Terms;

    fn clock(&self) -> &Arc<dyn Clock>;
}

/// Campaigns with an elector. One async block, because nested blocks would take the space twice.
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
            // The former leader is the first to know that the lock is free, and would win it again each time.
            let cools_down = outcome.reason().is_some_and(TermEndReason::cools_down);
            stand_back = if cools_down { elector.cool_down() } else { Duration::ZERO };
        }
        Ok(())
    })
}

/// Rejects a term for the caller if a callback would lead at the same time.
pub(super) fn by_hand(elector: &impl Compete, method: &'static str) -> Result<(), ElectionError> {
    match elector.on_start() {
        Some(_) => Err(ElectionError::CallbackIsSet { method }),
        None => Ok(()),
    }
}
