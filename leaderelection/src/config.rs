//! The configuration of an elector, checked once.

use std::sync::Arc;
use std::time::Duration;

use crate::callbacks::LeaderCallbacks;
use crate::clock::{Clock, SystemClock};
use crate::config_error::ConfigError;
use crate::config_warning::ConfigWarning;
use crate::election::Rules;
use crate::identity;
use crate::lock::ObjectStoreBasedLock;
use crate::store_check::StoreCheck;
use crate::timings::{Timings, Unchecked};

/// A checked configuration: see [`builder`](Self::builder).
#[derive(Clone, Debug)]
pub struct LeaderElectionConfig {
    pub(crate) lock: Arc<dyn ObjectStoreBasedLock>,
    pub(crate) callbacks: LeaderCallbacks,
    pub(crate) rules: Rules,
    pub(crate) timings: Timings,
    pub(crate) store_check: Option<Arc<dyn StoreCheck>>,
    pub(crate) step_down_cool_down: Duration,
    pub(crate) name: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seed: Option<u64>,
}

impl LeaderElectionConfig {
    /// A configuration for competing for `lock`, with client-go's timings: 15 s, 10 s and 2 s.
    ///
    /// ```
    /// use std::time::Duration;
    /// use leaderelection::{LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
    ///
    /// let lock = MemoryLock::new(MemoryStore::new(), "locks/scheduler", "node-1");
    /// let error = LeaderElectionConfig::builder(lock, LeaderCallbacks::new())
    ///     .lease_duration(Duration::from_secs(5))
    ///     .build()
    ///     .unwrap_err();
    /// assert_eq!(error.to_string(), "lease_duration (5s) must be greater than renew_deadline (10s)");
    /// ```
    pub fn builder(lock: impl ObjectStoreBasedLock, callbacks: LeaderCallbacks) -> LeaderElectionConfigBuilder {
        LeaderElectionConfigBuilder {
            lock: Arc::new(lock),
            callbacks,
            timings: Unchecked::default(),
            release_on_cancel: false,
            reclaim_own_identity: false,
            store_check: None,
            step_down_cool_down: None,
            name: None,
            clock: Arc::new(SystemClock),
            seed: None,
        }
    }

    /// The name in logs and metrics; by default what the lock is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The durations of the election.
    #[must_use]
    pub fn timings(&self) -> Timings {
        self.timings
    }

    /// The settings that are allowed and may hurt. The elector logs them when it first runs.
    ///
    /// ```
    /// use std::time::Duration;
    /// use leaderelection::{LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
    ///
    /// let lock = MemoryLock::new(MemoryStore::new(), "locks/scheduler", "node-1");
    /// let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new())
    ///     .retry_period(Duration::from_secs(8))
    ///     .build()?;
    /// for warning in config.warnings() {
    ///     assert!(warning.to_string().contains("a single slow request would end a term"));
    /// }
    /// # Ok::<(), leaderelection::ConfigError>(())
    /// ```
    #[must_use]
    pub fn warnings(&self) -> Vec<ConfigWarning> {
        let (retry_period, request_timeout) = (self.timings.retry_period(), self.timings.request_timeout());
        let interval = self.lock.object().and_then(|(store, _)| store.min_write_interval());
        let too_close = interval
            .filter(|interval| retry_period < *interval)
            .map(|min_write_interval| ConfigWarning::WritesTooClose { retry_period, min_write_interval });
        let single_try = self.timings.allow_a_single_try().then(|| ConfigWarning::SingleTry {
            retry_period,
            request_timeout,
            renew_deadline: self.timings.renew_deadline(),
        });
        too_close.into_iter().chain(single_try).collect()
    }
}

/// Builds a [`LeaderElectionConfig`].
#[derive(Clone, Debug)]
#[must_use]
pub struct LeaderElectionConfigBuilder {
    lock: Arc<dyn ObjectStoreBasedLock>,
    callbacks: LeaderCallbacks,
    timings: Unchecked,
    release_on_cancel: bool,
    reclaim_own_identity: bool,
    store_check: Option<Arc<dyn StoreCheck>>,
    step_down_cool_down: Option<Duration>,
    name: Option<String>,
    clock: Arc<dyn Clock>,
    seed: Option<u64>,
}

impl LeaderElectionConfigBuilder {
    /// All four durations at once. client-go's by default.
    pub fn timings(mut self, timings: Timings) -> Self {
        self.timings = timings.into();
        self
    }

    /// The time for which other candidates wait, after they saw the last renewal, before they take the lease.
    /// 15 s by default.
    ///
    /// A crashed leader is replaced after about this long. Leaders stay exclusive as long as no clock
    /// runs faster than another by more than `lease_duration / renew_deadline`.
    pub fn lease_duration(mut self, lease_duration: Duration) -> Self {
        self.timings.lease_duration = lease_duration;
        self
    }

    /// The time for which a leader leads on one renewal, counted from before it was sent. 10 s by default.
    pub fn renew_deadline(mut self, renew_deadline: Duration) -> Self {
        self.timings.renew_deadline = renew_deadline;
        self
    }

    /// The pause between a leader's renewals, and the least between a candidate's reads. 2 s by default.
    ///
    /// It decides the number of requests: a leader writes once per retry period, a candidate reads once
    /// per 1 to 2.2 retry periods.
    pub fn retry_period(mut self, retry_period: Duration) -> Self {
        self.timings.retry_period = retry_period;
        self
    }

    /// The time that one request may take before its outcome counts as unknown. A quarter of the renew
    /// deadline by default; must be less than half of it.
    ///
    /// Together with the retry period it should stay below the renew deadline. Otherwise a single slow renewal ends
    /// the term, which is allowed as in client-go, and is one of the [warnings](LeaderElectionConfig::warnings).
    pub fn request_timeout(mut self, request_timeout: Duration) -> Self {
        self.timings.request_timeout = Some(request_timeout);
        self
    }

    /// Sets `true` to give the lease back when a term ends, so that the next leader need not wait for it to
    /// run out. Off by default, as in client-go.
    ///
    /// The lease is released only after the leader's work has ended.
    pub fn release_on_cancel(mut self, release_on_cancel: bool) -> Self {
        self.release_on_cancel = release_on_cancel;
        self
    }

    /// Sets `true` to take a live lease that bears our identity at once, as client-go does. Off by default:
    /// two processes that share an identity by mistake would both lead.
    ///
    /// For identities that are stable and surely unique, such as a stateful set's pod name, it saves a
    /// restarted leader the wait for its own lease. It begins a new term all the same.
    pub fn reclaim_own_identity(mut self, reclaim_own_identity: bool) -> Self {
        self.reclaim_own_identity = reclaim_own_identity;
        self
    }

    /// Demands that the store pass `check` once, before the elector first competes. No check by default.
    ///
    /// On a store that fails, nobody is elected: `run` and `campaign` end with
    /// [`StoreUnfit`](crate::StoreUnfit). A check that is inconclusive is repeated after
    /// a lease duration.
    ///
    /// The crate `leaderelection-conformance` has a check to use here: `ProbeFirst`.
    pub fn store_check(mut self, check: impl StoreCheck) -> Self {
        self.store_check = Some(Arc::new(check));
        self
    }

    /// The time for which `campaign` lets the others go first after a step-down or a panic. One lease duration by
    /// default.
    pub fn step_down_cool_down(mut self, cool_down: Duration) -> Self {
        self.step_down_cool_down = Some(cool_down);
        self
    }

    /// The name in logs and metrics; by default what the lock is called.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Another clock than the machine's: for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Fixes all random choices, for tests. Candidates with equal seeds would write equal write ids.
    #[cfg(feature = "test-util")]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Checks the configuration.
    ///
    /// # Errors
    ///
    /// Names the first field that is wrong, its value, and what it must be.
    pub fn build(self) -> Result<LeaderElectionConfig, ConfigError> {
        let timings = self.timings.check()?;
        let (lease_duration, longest) = (timings.lease_duration(), self.lock.max_lease_duration());
        if lease_duration > longest {
            let problem =
                format!("({lease_duration:?}) must not be greater than the lock's max_lease_duration ({longest:?})");
            return Err(ConfigError::new("lease_duration", problem));
        }
        if let Some(problem) = identity::problem_with(self.lock.identity()) {
            let shown = identity::excerpt(self.lock.identity());
            return Err(ConfigError::new("identity", format!("({shown:?}) {problem}")));
        }
        if self.name.as_deref() == Some("") {
            return Err(ConfigError::new("name", "(\"\") must not be empty"));
        }
        if let Some(check) = &self.store_check
            && self.lock.object().is_none()
        {
            let lock = self.lock.describe();
            let problem = format!("({check:?}) needs a lock that names its store, such as ObjectLock; {lock} does not");
            return Err(ConfigError::new("store_check", problem));
        }
        Ok(LeaderElectionConfig {
            rules: Rules {
                identity: self.lock.identity().to_owned(),
                lease_duration,
                renew_deadline: timings.renew_deadline(),
                retry_period: timings.retry_period(),
                reclaim_own_identity: self.reclaim_own_identity,
                release_on_cancel: self.release_on_cancel,
            },
            timings,
            store_check: self.store_check,
            step_down_cool_down: self.step_down_cool_down.unwrap_or(lease_duration),
            name: self.name.unwrap_or_else(|| self.lock.describe()),
            lock: self.lock,
            callbacks: self.callbacks,
            clock: self.clock,
            seed: self.seed,
        })
    }
}
