//! What an elector is told, checked once.

use std::sync::Arc;
use std::time::Duration;

use crate::callbacks::LeaderCallbacks;
use crate::clock::{Clock, SystemClock};
use crate::election::Rules;
use crate::identity;
use crate::lock::ObjectStoreBasedLock;

/// client-go's jitter: a candidate waits a retry period and up to this many more.
pub const JITTER_FACTOR: f64 = 1.2;

/// A checked configuration: see [`builder`](Self::builder).
#[derive(Clone, Debug)]
pub struct LeaderElectionConfig {
    pub(crate) lock: Arc<dyn ObjectStoreBasedLock>,
    pub(crate) callbacks: LeaderCallbacks,
    pub(crate) rules: Rules,
    pub(crate) request_timeout: Duration,
    pub(crate) release_on_cancel: bool,
    pub(crate) require_probe: bool,
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
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            request_timeout: None,
            release_on_cancel: false,
            reclaim_own_identity: false,
            require_probe: false,
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
}

/// Builds a [`LeaderElectionConfig`].
#[derive(Clone, Debug)]
#[must_use]
pub struct LeaderElectionConfigBuilder {
    lock: Arc<dyn ObjectStoreBasedLock>,
    callbacks: LeaderCallbacks,
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    request_timeout: Option<Duration>,
    release_on_cancel: bool,
    reclaim_own_identity: bool,
    require_probe: bool,
    step_down_cool_down: Option<Duration>,
    name: Option<String>,
    clock: Arc<dyn Clock>,
    seed: Option<u64>,
}

impl LeaderElectionConfigBuilder {
    /// How long the others wait, after they saw the last renewal, before they take the lease.
    /// 15 s by default.
    ///
    /// A crashed leader is replaced after about this long. Leaders stay exclusive as long as no clock
    /// runs faster than another by more than `lease_duration / renew_deadline`.
    pub fn lease_duration(mut self, lease_duration: Duration) -> Self {
        self.lease_duration = lease_duration;
        self
    }

    /// How long a leader leads on one renewal, counted from before it was sent. 10 s by default.
    pub fn renew_deadline(mut self, renew_deadline: Duration) -> Self {
        self.renew_deadline = renew_deadline;
        self
    }

    /// The pause between a leader's renewals, and the least between a candidate's reads. 2 s by default.
    ///
    /// It decides the number of requests: a leader writes once per retry period, a candidate reads once
    /// per 1 to 2.2 retry periods.
    pub fn retry_period(mut self, retry_period: Duration) -> Self {
        self.retry_period = retry_period;
        self
    }

    /// How long one request may take before its outcome counts as unknown. A quarter of the renew
    /// deadline by default; must be less than half of it.
    ///
    /// Together with the retry period it should stay below the renew deadline: if it does not, which is
    /// allowed as in client-go, but logged as a warning, then a single slow renewal ends the term.
    pub fn request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = Some(request_timeout);
        self
    }

    /// Whether to give the lease back when a term ends, so that the next leader need not wait for it to
    /// run out. Off by default, as in client-go.
    ///
    /// The lease is released only after the leader's work has ended.
    pub fn release_on_cancel(mut self, release_on_cancel: bool) -> Self {
        self.release_on_cancel = release_on_cancel;
        self
    }

    /// Whether to take a live lease that bears our identity at once, as client-go does. Off by default:
    /// two processes that share an identity by mistake would both lead.
    ///
    /// For identities that are stable and surely unique, such as a stateful set's pod name, it saves a
    /// restarted leader the wait for its own lease. It begins a new term all the same.
    pub fn reclaim_own_identity(mut self, reclaim_own_identity: bool) -> Self {
        self.reclaim_own_identity = reclaim_own_identity;
        self
    }

    /// Whether to [probe](crate::probe) the store once, before the elector first competes. Off by default:
    /// it makes some 320 requests.
    ///
    /// On a store that fails, nobody is elected: the report is logged as an error, and `run` and
    /// `campaign` end with [`EndReason::StoreUnfit`](crate::EndReason::StoreUnfit). A probe that is
    /// inconclusive is logged and, after a lease duration, run again.
    ///
    /// The probe's objects are in a folder [beside](crate::probe::ProbeConfig::beside) the lock. Allow
    /// the process to delete them.
    pub fn require_probe(mut self, require_probe: bool) -> Self {
        self.require_probe = require_probe;
        self
    }

    /// How long `campaign` lets the others go first after a step-down or a panic. One lease duration by
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

    /// Fixes all random choices: for tests. Candidates with equal seeds would write equal write ids.
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
        let request_timeout = self.request_timeout.unwrap_or(self.renew_deadline / 4);
        for (field, value) in [
            ("lease_duration", self.lease_duration),
            ("renew_deadline", self.renew_deadline),
            ("retry_period", self.retry_period),
            ("request_timeout", request_timeout),
        ] {
            if value.is_zero() {
                return Err(ConfigError::new(field, format!("({value:?}) must be greater than zero")));
            }
        }
        self.check_timings(request_timeout)?;
        if let Some(problem) = identity::problem_with(self.lock.identity()) {
            let shown = identity::excerpt(self.lock.identity());
            return Err(ConfigError::new("identity", format!("({shown:?}) {problem}")));
        }
        if self.name.as_deref() == Some("") {
            return Err(ConfigError::new("name", "(\"\") must not be empty"));
        }
        if self.require_probe && self.lock.object().is_none() {
            let lock = self.lock.describe();
            let problem = format!("(true) needs a lock that names its store, such as ObjectLock; {lock} does not");
            return Err(ConfigError::new("require_probe", problem));
        }
        self.warn_of_throttling();
        self.warn_of_single_tries(request_timeout);
        Ok(LeaderElectionConfig {
            rules: Rules {
                identity: self.lock.identity().to_owned(),
                lease_duration: self.lease_duration,
                renew_deadline: self.renew_deadline,
                retry_period: self.retry_period,
                reclaim_own_identity: self.reclaim_own_identity,
            },
            request_timeout,
            release_on_cancel: self.release_on_cancel,
            require_probe: self.require_probe,
            step_down_cool_down: self.step_down_cool_down.unwrap_or(self.lease_duration),
            name: self.name.unwrap_or_else(|| self.lock.describe()),
            lock: self.lock,
            callbacks: self.callbacks,
            clock: self.clock,
            seed: self.seed,
        })
    }

    fn warn_of_throttling(&self) {
        let interval = self.lock.object().and_then(|(store, _)| store.min_write_interval());
        if interval.is_some_and(|interval| self.retry_period < interval) {
            tracing::warn!(
                lock = self.lock.describe(),
                retry_period = ?self.retry_period,
                min_write_interval = ?interval,
                "the store refuses writes this close together; use a longer retry_period"
            );
        }
    }

    fn warn_of_single_tries(&self, request_timeout: Duration) {
        if self.retry_period.saturating_add(request_timeout) >= self.renew_deadline {
            tracing::warn!(
                lock = self.lock.describe(),
                retry_period = ?self.retry_period,
                ?request_timeout,
                renew_deadline = ?self.renew_deadline,
                "a single slow request would end a term, because renew_deadline leaves no time for another; use a \
                 longer renew_deadline, or a shorter retry_period or request_timeout"
            );
        }
    }

    fn check_timings(&self, request_timeout: Duration) -> Result<(), ConfigError> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        if lease_duration <= renew_deadline {
            let problem = format!("({lease_duration:?}) must be greater than renew_deadline ({renew_deadline:?})");
            return Err(ConfigError::new("lease_duration", problem));
        }
        let longest_poll = Duration::try_from_secs_f64(retry_period.as_secs_f64() * JITTER_FACTOR);
        if longest_poll.unwrap_or(Duration::MAX) >= renew_deadline {
            let problem = format!(
                "({renew_deadline:?}) must be greater than retry_period ({retry_period:?}) times {JITTER_FACTOR}"
            );
            return Err(ConfigError::new("renew_deadline", problem));
        }
        if request_timeout >= renew_deadline / 2 {
            let problem =
                format!("({request_timeout:?}) must be less than half of renew_deadline ({renew_deadline:?})");
            return Err(ConfigError::new("request_timeout", problem));
        }
        let longest = self.lock.max_lease_duration();
        if lease_duration > longest {
            let problem =
                format!("({lease_duration:?}) must not be greater than the lock's max_lease_duration ({longest:?})");
            return Err(ConfigError::new("lease_duration", problem));
        }
        Ok(())
    }
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct ConfigError {
    field: &'static str,
    problem: String,
}

impl ConfigError {
    fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }

    /// The field at fault.
    #[must_use]
    pub fn field(&self) -> &str {
        self.field
    }
}
