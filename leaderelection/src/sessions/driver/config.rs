//! The configuration of a session, checked once.

use std::sync::Arc;
use std::time::Duration;

use super::place::Place;
use super::session::Session;
use super::settings::Settings;
use crate::config::common::{SharedSettings, common_setters};
use crate::lock::record::DEFAULT_MAX_LEASE_DURATION;
use crate::sessions::machine::{MAX_WEIGHT, SessionConfig};
use crate::store::ConditionalStore;
use crate::timings::config_error::ConfigError;
use crate::util::names;

/// Builds a [`Session`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SessionBuilder {
    store: Arc<dyn ConditionalStore>,
    prefix: String,
    identity: String,
    common: SharedSettings,
    weight: u32,
    balance: bool,
    max_handoffs: Option<usize>,
    at_a_time: Option<usize>,
    scan_interval: Option<Duration>,
}

impl Session {
    /// Returns a builder of a session of the process `identity`. The objects of all sessions and locks are under
    /// `prefix` in `store`.
    pub fn builder(
        store: impl ConditionalStore,
        prefix: impl Into<String>,
        identity: impl Into<String>,
    ) -> SessionBuilder {
        SessionBuilder {
            store: Arc::new(store),
            prefix: prefix.into(),
            identity: identity.into(),
            common: SharedSettings::default(),
            weight: 1,
            balance: false,
            max_handoffs: None,
            at_a_time: None,
            scan_interval: None,
        }
    }
}

common_setters!(SessionBuilder);

impl SessionBuilder {
    /// Sets the share of the locks that this member takes, compared with the weights of the other members. The default
    /// is 1, the largest is 64.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Decides whether this member hands over locks to the members that are first in rank for them. Then a new member gets its share. A
    /// stop takes a retry period longer, or four request timeouts if this member gets messages from all others; in return, locks are
    /// without a leader for a shorter time. The default is `false`.
    pub fn balance(mut self, balance: bool) -> Self {
        self.balance = balance;
        self
    }

    /// Sets the number of locks that this member hands over in each retry period for balance. The next ones follow once these were taken.
    /// The default is a 32nd of the number of locks, from 8 to 128.
    pub fn max_handoffs(mut self, max_handoffs: usize) -> Self {
        self.max_handoffs = Some(max_handoffs);
        self
    }

    /// Sets the largest number of requests about locks and other sessions that are in flight at the same time. The default
    /// is a 32nd of the number of locks, from 16 to 128.
    ///
    /// If the store throttles, this is halved, and doubled again after each retry period without a rejection. The renewal of the session
    /// never waits for these requests.
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.at_a_time = Some(requests);
        self
    }

    /// Sets the longest pause between two scans of all locks, and between two searches for new sessions. The default is 30 s, or one retry
    /// period if that is longer.
    pub fn scan_interval(mut self, scan_interval: Duration) -> Self {
        self.scan_interval = Some(scan_interval);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// The error names the first invalid field, its value, and the accepted values.
    pub fn build(self) -> Result<Session, ConfigError> {
        let Self { store, prefix, identity, common, weight, balance, max_handoffs, at_a_time, scan_interval } = self;
        let prefix = prefix.trim_end_matches('/');
        let describe = || store.describe(prefix);
        let (election, basics) = common.check(&identity, DEFAULT_MAX_LEASE_DURATION, None, describe)?;
        if let Some(problem) = names::problem_with(prefix) {
            return Err(ConfigError::new("prefix", format!("({prefix:?}) {problem}")));
        }
        if !(1..=MAX_WEIGHT).contains(&weight) {
            return Err(ConfigError::new("weight", format!("({weight}) must be from 1 to {MAX_WEIGHT}")));
        }
        for (name, number) in [("max_handoffs", max_handoffs), ("max_in_flight", at_a_time)] {
            if number == Some(0) {
                return Err(ConfigError::new(name, "(0) must be at least 1"));
            }
        }
        let retry_period = election.retry_period;
        let scan_interval = scan_interval.unwrap_or(Duration::from_secs(30).max(retry_period));
        if scan_interval < retry_period {
            let problem = format!("({scan_interval:?}) must not be less than retry_period ({retry_period:?})");
            return Err(ConfigError::new("scan_interval", problem).beside(&["retry_period"]));
        }
        let rules =
            SessionConfig { weight, balance, max_handoffs, at_a_time, scan_interval, ..SessionConfig::new(election) };
        let place = Place::new(store, prefix, basics.limit.clone());
        Ok(Session::new(Settings { rules, place, basics }))
    }
}
