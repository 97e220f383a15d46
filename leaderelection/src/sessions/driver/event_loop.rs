//! The loop that drives the state machine of sessions. The machine makes all decisions.

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

    /// Runs the session until the caller has asked to stop and the session has ended.
    pub(super) async fn run(&mut self, shared: &Arc<Shared>, mut stop: Stop<'_>) -> Result<(), StoreUnfit> {
        let Self { store_check, entropy, .. } = self;
        let Settings { fleet, basics, .. } = &shared.settings;
        let candidacy = || Ok(basics.candidacy(fleet.check_object(), entropy.new_id()));
        let fit = tokio::select! {
            biased;
            () = stop::requested(stop.as_mut()) => return Ok(()),
            fit = store_check.require_passed(basics.store_check.as_deref(), candidacy) => fit,
        };
        if let Err(unfit) = fit {
            // The electors that wait for this run get the error, too.
            shared.set_state(State::Unfit(unfit.clone()));
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
        // Electors that have waited for this run send their orders now, so that one listing shows all their locks.
        tokio::task::yield_now().await;
        let mut told_to_stop = false;
        let mut event = Event::Input(Input::Begin);
        loop {
            run.step(event);
            if run.ended {
                return;
            }
            run.dropped_work.wait_until_run().await;
            event = run.wait(stop.as_mut()).await;
            // The session's stop is handled before other events, because its electors often stop at the same time: one write then frees
            // all locks. A transfer is handled before the stop, so that its lock goes to the named candidate.
            if !told_to_stop && !event.is_command() && stop::is_requested(stop.as_mut()).await {
                told_to_stop = true;
                run.step(Event::Input(Input::Stop));
            }
        }
    }
}
