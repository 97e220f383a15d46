//! The settings of an elector that may change while it runs: its timings, and its address for clients.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::config::LeaderElectionConfig;
use crate::config::common::SharedConfig;
use crate::election::ElectionConfig;
use crate::lock::advertised;
use crate::timings::Timings;
use crate::timings::config_error::ConfigError;
use crate::util::sync::Mutex;

/// The latest settings of an elector, and the settings that limit new timings.
#[derive(Debug)]
pub(crate) struct Tuning {
    longest_lease: Duration,
    /// `None` means the retry period.
    follower_interval: Option<Duration>,
    state: Mutex<State>,
    /// Wakes the elector when settings have changed, the term has an event, or a peer has sent a message.
    pub(crate) wake_elector: Notify,
}

/// The settings that may change.
#[derive(Clone, Debug)]
pub(crate) struct Tuned {
    pub(crate) timings: Timings,
    clients: Option<String>,
}

#[derive(Debug)]
struct State {
    tuned: Tuned,
    /// `true` if the elector has not applied the settings yet.
    is_new: bool,
}

impl Tuning {
    pub(crate) fn new(config: &LeaderElectionConfig) -> Self {
        Self {
            longest_lease: config.lock.max_lease_duration(),
            follower_interval: config.follower_interval,
            state: Mutex::new(State {
                tuned: Tuned { timings: config.basics.timings, clients: config.rules.advertised_to_clients.clone() },
                is_new: false,
            }),
            wake_elector: Notify::new(),
        }
    }

    pub(crate) fn timings(&self) -> Timings {
        self.state.lock().tuned.timings
    }

    pub(crate) fn set(&self, timings: Timings) -> Result<(), ConfigError> {
        timings.check_for(self.longest_lease, self.follower_interval)?;
        self.change(|tuned| tuned.timings = timings);
        Ok(())
    }

    pub(crate) fn set_clients(&self, url: Option<String>) -> Result<(), ConfigError> {
        url.as_deref().map_or(Ok(()), |url| advertised::check("advertise_to_clients", url))?;
        self.change(|tuned| tuned.clients = url);
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Tuned)) {
        let mut state = self.state.lock();
        change(&mut state.tuned);
        state.is_new = true;
        drop(state);
        self.wake_elector.notify_one();
    }

    /// Returns the settings if they have changed since the last call.
    pub(crate) fn take(&self) -> Option<Tuned> {
        let mut state = self.state.lock();
        std::mem::take(&mut state.is_new).then(|| state.tuned.clone())
    }
}

impl LeaderElectionConfig {
    /// This configuration with other settings, which [`Tuning`] has checked.
    pub(crate) fn with(&self, Tuned { timings, clients }: Tuned) -> Self {
        let follower_interval = self.follower_interval.unwrap_or(timings.retry_period());
        let rules = (*self.rules).clone().at(timings, follower_interval);
        let rules = Arc::new(ElectionConfig { advertised_to_clients: clients, ..rules });
        let limit = self.basics.limit.clone().of_duration(timings.request_timeout());
        Self { rules, basics: SharedConfig { timings, limit, ..self.basics.clone() }, ..self.clone() }
    }
}
