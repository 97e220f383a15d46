//! The configuration of a session, checked once.

use std::sync::Arc;
use std::time::Duration;

use super::place::Place;
use super::session::Session;
use super::settings::Settings;
use crate::bounded::TimeLimit;
use crate::clock::{Clock, SystemClock};
use crate::config::RELEASE_PATIENCE;
use crate::config_error::ConfigError;
use crate::election;
use crate::identity;
use crate::record::DEFAULT_MAX_LEASE_DURATION;
use crate::session::{MAX_WEIGHT, Rules};
use crate::store::ConditionalStore;
use crate::store_check::StoreCheck;
use crate::timings::{Timings, Unchecked};

/// Builds a [`Session`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SessionBuilder {
    store: Arc<dyn ConditionalStore>,
    prefix: String,
    identity: String,
    timings: Unchecked,
    weight: u32,
    balance: bool,
    hand_overs: usize,
    look_around: Option<Duration>,
    store_check: Option<Arc<dyn StoreCheck>>,
    request_timeout_setting: &'static str,
    name: Option<String>,
    clock: Arc<dyn Clock>,
    seed: Option<u64>,
}

impl Session {
    /// Returns a builder of a session of the process `identity`. The objects of all sessions and locks are under
    /// `prefix` in `store`.
    pub fn builder(
        store: impl ConditionalStore,
        prefix: impl Into<String>,
        identity: impl Into<String>,
    ) -> SessionBuilder {
        SessionBuilder::new(Arc::new(store), prefix.into(), identity.into())
    }
}

impl SessionBuilder {
    fn new(store: Arc<dyn ConditionalStore>, prefix: String, identity: String) -> Self {
        Self {
            store,
            prefix,
            identity,
            timings: Unchecked::default(),
            weight: 1,
            balance: false,
            hand_overs: 4,
            look_around: None,
            store_check: None,
            request_timeout_setting: "request_timeout",
            name: None,
            clock: Arc::new(SystemClock),
            seed: None,
        }
    }

    /// Sets all four durations at once. The default is client-go's timings: 15 s, 10 s and 2 s.
    pub fn timings(mut self, timings: Timings) -> Self {
        self.timings = timings.into();
        self
    }

    /// Sets the time that other members wait after the last observed renewal of this session before they end it. The
    /// default is 15 s.
    pub fn lease_duration(mut self, lease_duration: Duration) -> Self {
        self.timings.lease_duration = lease_duration;
        self
    }

    /// Sets the time for which one renewal keeps all locks, counted from before the renewal was sent. The default is
    /// 10 s.
    pub fn renew_deadline(mut self, renew_deadline: Duration) -> Self {
        self.timings.renew_deadline = renew_deadline;
        self
    }

    /// Sets the pause between renewals of the session, and the shortest pause between looks at another session. The
    /// default is 2 s.
    pub fn retry_period(mut self, retry_period: Duration) -> Self {
        self.timings.retry_period = retry_period;
        self
    }

    /// Sets the time after which the outcome of a request counts as unknown. The default is a quarter of the renew
    /// deadline.
    pub fn request_timeout(mut self, request_timeout: Duration) -> Self {
        self.timings.request_timeout = Some(request_timeout);
        self
    }

    /// Names the setting of the program that holds the request timeout, for the error of a request without an answer.
    /// The default is `request_timeout`.
    pub fn request_timeout_setting(mut self, setting: &'static str) -> Self {
        self.request_timeout_setting = setting;
        self
    }

    /// Sets the share of the locks that this member takes, compared with the weights of the other members. The default
    /// is 1, the largest is 64.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Decides whether this member hands over locks to the members that are first in rank for them, so that a member
    /// that joins gets its share. The default is `false`.
    pub fn balance(mut self, balance: bool) -> Self {
        self.balance = balance;
        self
    }

    /// Sets the number of locks that are handed over at the same time for balance. The default is 4.
    pub fn hand_overs(mut self, hand_overs: usize) -> Self {
        self.hand_overs = hand_overs;
        self
    }

    /// Sets the longest pause between two looks at all locks, and between two searches for new sessions. The default is
    /// 30 s, or one retry period if that is longer.
    pub fn look_around(mut self, look_around: Duration) -> Self {
        self.look_around = Some(look_around);
        self
    }

    /// Demands that the store pass `check` once, before the session first opens. The default is no check.
    ///
    /// On a store that fails, no session opens: [`Session::run`] and all electors end with
    /// [`StoreUnfit`](crate::StoreUnfit). An inconclusive check is repeated after a lease duration.
    pub fn store_check(mut self, check: impl StoreCheck) -> Self {
        self.store_check = Some(Arc::new(check));
        self
    }

    /// Sets the name in logs. The default is the prefix in its store.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets another clock than the machine's, for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Fixes all random choices, for tests. Members with equal seeds would write equal write ids.
    #[cfg(feature = "test-util")]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// The error names the first invalid field, its value, and the accepted values.
    pub fn build(self) -> Result<Session, ConfigError> {
        let timings = self.timings.check()?;
        let (lease_duration, longest) = (timings.lease_duration(), DEFAULT_MAX_LEASE_DURATION);
        if lease_duration > longest {
            let problem = format!("({lease_duration:?}) must not be greater than {longest:?}");
            return Err(ConfigError::new("lease_duration", problem));
        }
        if let Some(problem) = identity::problem_with(&self.identity) {
            let shown = identity::excerpt(&self.identity);
            return Err(ConfigError::new("identity", format!("({shown:?}) {problem}")));
        }
        if !(1..=MAX_WEIGHT).contains(&self.weight) {
            return Err(ConfigError::new("weight", format!("({}) must be from 1 to {MAX_WEIGHT}", self.weight)));
        }
        if self.hand_overs == 0 {
            return Err(ConfigError::new("hand_overs", "(0) must be at least 1"));
        }
        let retry_period = timings.retry_period();
        let look_around = self.look_around.unwrap_or(Duration::from_secs(30).max(retry_period));
        if look_around < retry_period {
            let problem = format!("({look_around:?}) must not be less than retry_period ({retry_period:?})");
            return Err(ConfigError::new("look_around", problem));
        }
        let mut election = election::Rules::new(self.identity, lease_duration, timings.renew_deadline(), retry_period);
        election.release_patience = timings.request_timeout().saturating_mul(RELEASE_PATIENCE);
        let mut rules = Rules::new(election);
        (rules.weight, rules.balance) = (self.weight, self.balance);
        (rules.hand_overs, rules.look_around) = (self.hand_overs, look_around);
        let limit = TimeLimit::new(timings.request_timeout())
            .of_setting(self.request_timeout_setting)
            .on_shared_clock(Arc::clone(&self.clock));
        let place = Place::new(self.store, &self.prefix, limit, longest);
        let name = self.name.unwrap_or_else(|| place.describe());
        let (store_check, clock, seed) = (self.store_check, self.clock, self.seed);
        Ok(Session::new(Settings { rules, place, name, timings, store_check, clock, seed }))
    }
}
