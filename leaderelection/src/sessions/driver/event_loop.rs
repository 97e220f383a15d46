//! The loop that drives the state machine of sessions, like the driver of an elector. It contains none of the protocol's rules.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::log::Failures;
use super::orders::State;
use super::run::{Event, Run};
use super::settings::Settings;
use super::shared::{Call, Shared};
use crate::elector::anomalies::Anomalies;
use crate::elector::entropy::Entropy;
use crate::elector::store_check::StoreCheckState;
use crate::sessions::machine::Input;
use crate::store::check::StoreUnfit;
use crate::util::stop::{self, Stop};

/// The part of a session's driver that outlives a run.
#[derive(Debug)]
pub(super) struct Driver {
    entropy: Entropy,
    store_check: StoreCheckState,
    failures: Failures,
    anomalies: Anomalies,
    calls: mpsc::UnboundedReceiver<Call>,
}

impl Driver {
    pub(super) fn new(settings: &Settings, calls: mpsc::UnboundedReceiver<Call>) -> Self {
        let entropy = Entropy::new(Arc::clone(&settings.basics.clock), settings.basics.seed);
        let failures = Failures::new(settings.rules.election.lease_duration);
        Self { entropy, store_check: StoreCheckState::default(), failures, anomalies: Anomalies::default(), calls }
    }

    /// Runs until it is told to stop.
    pub(super) async fn run(&mut self, shared: &Arc<Shared>, mut stop: Stop<'_>) -> Result<(), StoreUnfit> {
        let Self { store_check, entropy, .. } = self;
        let Settings { place, basics, .. } = &shared.settings;
        let candidacy = || Ok(basics.candidacy(place.object(), entropy.new_id()));
        let fit = tokio::select! {
            biased;
            () = stop::requested(stop.as_mut()) => return Ok(()),
            fit = store_check.require_passed(basics.store_check.as_deref(), candidacy) => fit,
        };
        if let Err(unfit) = fit {
            // Nobody waits for a session that never opens.
            shared.is_now(State::Unfit(unfit.clone()));
            return Err(unfit);
        }
        self.drive(shared, stop).await;
        if let Some(history) = &basics.history {
            history.written().await;
        }
        Ok(())
    }

    async fn drive(&mut self, shared: &Arc<Shared>, mut stop: Stop<'_>) {
        let Self { entropy, failures, anomalies, calls, .. } = self;
        let mut run = Run::new(shared, entropy, failures, anomalies, calls);
        // One listing then shows the locks of all electors that have waited for this.
        tokio::task::yield_now().await;
        let mut told_to_stop = false;
        let mut woken = Event::Input(Input::Begin);
        loop {
            run.step(woken);
            if run.ended {
                return;
            }
            run.dropped_work.wait_until_run().await;
            woken = run.wait(stop.as_mut()).await;
            // One write frees all locks if the session ends before its electors, which often stop with it. A
            // transfer takes precedence over a cancellation at the same time, so the lock goes to the named candidate.
            if !told_to_stop && !woken.is_command() && stop::is_requested(stop.as_mut()).await {
                told_to_stop = true;
                run.step(Event::Input(Input::Stop));
            }
        }
    }
}
