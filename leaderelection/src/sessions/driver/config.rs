//! The builder of a session, which checks the settings.

use std::sync::Arc;
use std::time::Duration;

use super::fleet::Fleet;
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
    max_in_flight: Option<usize>,
    scan_interval: Option<Duration>,
}

impl Session {
    /// Returns a builder of a session. Its process competes under `identity`. The objects of all sessions and locks are
    /// under `prefix` in `store`.
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
            max_in_flight: None,
            scan_interval: None,
        }
    }
}

common_setters!(SessionBuilder);

impl SessionBuilder {
    /// Sets the share of the locks that this member takes: a member of weight 2 takes about twice as many as one of weight 1.
    /// The default is 1, the largest weight is 64.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Decides whether this member hands over some of its locks to other members, so that a new member gets its share.
    /// The default is `false`.
    ///
    /// With `true`, a graceful stop leaves the locks without a leader for a shorter time. The stop itself takes up to a retry
    /// period longer, or up to four request timeouts longer if this member gets messages from all others.
    pub fn balance(mut self, balance: bool) -> Self {
        self.balance = balance;
        self
    }

    /// Sets how many locks this member hands over in each retry period for balance. It hands over more only after these were
    /// taken. The default is a 32nd of the number of locks, but at least 8 and at most 128.
    pub fn max_handoffs(mut self, max_handoffs: usize) -> Self {
        self.max_handoffs = Some(max_handoffs);
        self
    }

    /// Limits the requests about locks and other sessions that are in flight at the same time. The default is a 32nd of the
    /// number of locks, but at least 16 and at most 128. The renewal of the session does not count, and never waits.
    ///
    /// If the store throttles, the limit is halved. After each retry period without a rejection, it is doubled until it is
    /// back at this number.
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = Some(requests);
        self
    }

    /// Sets the longest pause between two scans of all locks, and between two searches for new sessions. The default is
    /// 30 s, or one retry period if that is longer.
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
        let Self {
            store, prefix, identity, common, weight, balance, max_handoffs, max_in_flight, scan_interval, ..
        } = self;
        let prefix = prefix.trim_end_matches('/');
        let describe = || store.describe(prefix);
        let (election, basics) = common.check(&identity, DEFAULT_MAX_LEASE_DURATION, None, describe)?;
        if let Some(problem) = names::problem_with(prefix) {
            return Err(ConfigError::new("prefix", format!("({prefix:?}) {problem}")));
        }
        if !(1..=MAX_WEIGHT).contains(&weight) {
            return Err(ConfigError::new("weight", format!("({weight}) must be from 1 to {MAX_WEIGHT}")));
        }
        for (name, number) in [("max_handoffs", max_handoffs), ("max_in_flight", max_in_flight)] {
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
        let rules = SessionConfig {
            weight,
            balance,
            max_handoffs,
            max_in_flight,
            scan_interval,
            ..SessionConfig::new(election)
        };
        let fleet = Fleet::new(store, prefix, basics.limit.clone());
        Ok(Session::new(Settings { rules, fleet, basics }))
    }
}
