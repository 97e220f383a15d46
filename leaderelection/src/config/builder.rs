//! The configuration of an elector, and its builder.

mod rank;

use std::sync::Arc;
use std::time::Duration;

use crate::config::callbacks::LeaderCallbacks;
use crate::config::common::{SharedConfig, SharedSettings, common_setters};
use crate::config::warning::ConfigWarning;
use crate::election::ElectionConfig;
use crate::lock::ObjectStoreBasedLock;
use crate::store::check::{Candidacy, StoreUnfit};
use crate::timings::Timings;
use crate::timings::config_error::ConfigError;
use crate::util::names;

/// The checked configuration of an elector: see [`builder`](Self::builder).
#[derive(Clone, Debug)]
pub struct LeaderElectionConfig {
    pub(crate) lock: Arc<dyn ObjectStoreBasedLock>,
    pub(crate) callbacks: LeaderCallbacks,
    pub(crate) rules: Arc<ElectionConfig>,
    pub(crate) basics: SharedConfig,
    /// `None` means one lease duration.
    pub(crate) step_down_cool_down: Option<Duration>,
    /// `None` means one retry period.
    pub(crate) follower_interval: Option<Duration>,
}

impl LeaderElectionConfig {
    /// Returns a builder of a configuration for `lock`, with client-go's timings: 15 s, 10 s and 2 s. A program without
    /// callbacks passes `()`.
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
    pub fn builder(
        lock: impl ObjectStoreBasedLock,
        callbacks: impl Into<LeaderCallbacks>,
    ) -> LeaderElectionConfigBuilder {
        LeaderElectionConfigBuilder {
            lock: Arc::new(lock),
            callbacks: callbacks.into(),
            common: SharedSettings::default(),
            step_down_cool_down: None,
            follower_interval: None,
        }
    }

    /// The name of the elector in logs and metrics; by default the name of the lock.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.basics.name
    }

    /// The durations of the election.
    #[must_use]
    pub fn timings(&self) -> Timings {
        self.basics.timings
    }

    /// The settings that are allowed but may cause harm. The elector logs a warning about each when it first runs.
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
        let timings = self.basics.timings;
        let (retry_period, request_timeout) = (timings.retry_period(), timings.request_timeout());
        let interval = self.lock.object().and_then(|(store, _)| store.min_write_interval());
        let too_close = interval
            .filter(|interval| retry_period < *interval)
            .map(|min_write_interval| ConfigWarning::WritesTooClose { retry_period, min_write_interval });
        let single_try = timings.allow_a_single_try().then(|| ConfigWarning::SingleTry {
            retry_period,
            request_timeout,
            renew_deadline: timings.renew_deadline(),
        });
        too_close.into_iter().chain(single_try).collect()
    }
}

impl LeaderElectionConfig {
    /// Describes the candidacy `id` to the check of its store.
    pub(crate) fn candidacy(&self, id: String) -> Result<Candidacy<'_>, StoreUnfit> {
        // With a store check, the builder requires a lock that names its store, so this error does not occur.
        let nameless = || StoreUnfit { why: "the lock does not name its store".to_owned() };
        Ok(self.basics.candidacy(self.lock.object().ok_or_else(nameless)?, id))
    }
}

/// The resolution of HTTP's times, and therefore the smallest slack.
const STORE_CLOCK_GRAIN: Duration = Duration::from_secs(1);

/// Builds a [`LeaderElectionConfig`].
#[derive(Clone, Debug)]
#[must_use]
pub struct LeaderElectionConfigBuilder {
    lock: Arc<dyn ObjectStoreBasedLock>,
    callbacks: LeaderCallbacks,
    common: SharedSettings,
    step_down_cool_down: Option<Duration>,
    follower_interval: Option<Duration>,
}

common_setters!(LeaderElectionConfigBuilder);

impl LeaderElectionConfigBuilder {
    /// Sets the shortest pause between a candidate's reads while the leader renews its lease. The default is the retry
    /// period. The pause is this interval plus up to 1.2 retry periods, and must be less than the lease duration.
    ///
    /// A longer interval saves reads, but failover takes longer, by at most the interval: the candidate sees a release
    /// later, and after a crash, it counts the lease from a renewal that it saw later. After a read that shows no
    /// renewal, the candidate reads at the pace of the retry period. In any case, it acts when the observed lease
    /// expires.
    pub fn follower_interval(mut self, follower_interval: Duration) -> Self {
        self.follower_interval = Some(follower_interval);
        self
    }

    /// Decides whether the lease is released after a cancellation, a missed renew deadline, or a panic of the work, so
    /// that the next leader need not wait until it expires. The default is `true`. client-go's default is `false`,
    /// because client-go releases a lease while the work may still run.
    ///
    /// This library releases a lease only after the leader's work has ended. It always releases the lease after a
    /// step-down, a transfer, failed work, or complete work of `run_while_leading`, and if the release has to store the
    /// mark of a job. After a cancellation, it tries for four request timeouts at most; then the lease expires.
    ///
    /// ```
    /// use leaderelection::{
    ///     CancellationToken, DefaultLeaderElector, Elector, LeaderElectionConfig, MemoryLock, MemoryStore,
    ///     ObjectStoreBasedLock,
    /// };
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (lock, shutdown) = (MemoryLock::new(MemoryStore::new(), "lock", "a"), CancellationToken::new());
    /// let elector = DefaultLeaderElector::new(LeaderElectionConfig::builder(lock.clone(), ()).build()?);
    /// let (mut handle, task) = elector.spawn(shutdown.clone().cancelled_owned());
    /// handle.elected().await?;
    /// shutdown.cancel();
    /// task.await??;
    /// let record = lock.get().await?.expect("a lock").record;
    /// assert!(record.is_released(), "nobody has to wait for its expiry");
    /// # Ok(())
    /// # }
    /// ```
    pub fn release_on_cancel(mut self, release_on_cancel: bool) -> Self {
        self.common.rules.release_on_cancel = release_on_cancel;
        self
    }

    /// Decides whether a candidate takes an unexpired lease under its own identity at once, as client-go does. The
    /// default is `false`, because two processes that share an identity by mistake would both lead.
    ///
    /// Use `true` only for identities that are stable and unique for certain, such as the pod names of a StatefulSet. A
    /// restarted leader then need not wait for its own lease to expire. It still begins a new term.
    pub fn reclaim_own_identity(mut self, reclaim_own_identity: bool) -> Self {
        self.common.rules.reclaim_own_identity = reclaim_own_identity;
        self
    }

    /// Trusts the store's clock about the age of a lease, within `slack`. By default, a candidate waits one lease
    /// duration from the moment at which it first read a renewal, however old the renewal was.
    ///
    /// A store may report how old an object is by the store's own clock; an HTTP store does so with `Date` and
    /// `Last-Modified`. With this setting, a candidate counts that [age](crate::implement::VersionedObject::age), minus
    /// `slack`, as time that it has already waited. If it starts after a dead leader's lease has expired, it can take
    /// over at its first read. A store that reports no age makes this setting useless, and the log says so once. A
    /// session ignores ages.
    ///
    /// Leaders stay exclusive under three conditions: the clocks of the store's servers agree within `slack` minus one
    /// second (the resolution of HTTP's times), the store's clock keeps to the bound of the candidates' clocks (see
    /// [`lease_duration`](Self::lease_duration)), and no proxy writes its own `Date`. The wall clocks of the candidates
    /// do not matter, except with a local directory, which has no other clock.
    pub fn trust_store_clock(mut self, slack: Duration) -> Self {
        self.common.rules.store_clock_slack = Some(slack);
        self
    }

    /// Sets how long `campaign` lets other candidates go first after a step-down, or after work that panicked or
    /// returned an error. The default is one lease duration.
    pub fn step_down_cool_down(mut self, cool_down: Duration) -> Self {
        self.step_down_cool_down = Some(cool_down);
        self
    }

    /// Sets the longest pause between a candidate's reads while it gets [messages](crate::peers) from the leader. The
    /// default is 30 s.
    ///
    /// A peer that lies, or is cut off from the store, can delay a takeover. The takeover then comes at most twice this
    /// time after the last renewal, or about this time plus one lease duration, whichever is longer (rule 16 of the
    /// [protocol](crate::protocol)).
    #[cfg(feature = "peers")]
    pub fn background_interval(mut self, background_interval: Duration) -> Self {
        self.common.rules.background_interval = background_interval;
        self
    }

    /// Checks the configuration.
    ///
    /// # Errors
    ///
    /// The error names the first invalid field, its value, and the accepted values.
    pub fn build(self) -> Result<LeaderElectionConfig, ConfigError> {
        let Self { lock, callbacks, common, step_down_cool_down, follower_interval } = self;
        let (rank, worst) = (common.rules.rank, LeaderElectionConfig::WORST_RANK);
        if rank > worst {
            return Err(ConfigError::new("rank", format!("({rank}) must be at most {worst}; 0 is the best rank")));
        }
        let (identity, longest) = (lock.identity(), lock.max_lease_duration());
        let (rules, basics) = common.check(identity, longest, follower_interval, || lock.describe())?;
        for (_, key) in lock.objects() {
            let problem = match key.is_empty() {
                true => Some("must not be empty; name the object of the lock, such as locks/scheduler".to_owned()),
                false => names::problem_with(&key),
            };
            if let Some(problem) = problem {
                return Err(ConfigError::new("key", format!("({key:?}) {problem}")));
            }
        }
        if let Some(slack) = rules.store_clock_slack.filter(|slack| *slack < STORE_CLOCK_GRAIN) {
            let problem = format!(
                "({slack:?}) must not be less than {STORE_CLOCK_GRAIN:?}, the resolution of the times that stores report"
            );
            return Err(ConfigError::new("trust_store_clock", problem));
        }
        if rules.background_interval.is_zero() {
            return Err(ConfigError::new("background_interval", "(0ns) must be greater than zero"));
        }
        if let Some(check) = basics.store_check.as_ref().filter(|_| lock.object().is_none()) {
            let lock = lock.describe();
            let problem = format!("({check:?}) needs a lock that names its store, such as ObjectLock; {lock} does not");
            return Err(ConfigError::new("store_check", problem));
        }
        if basics.history.is_some() && lock.objects().is_empty() {
            let problem = format!("needs a lock that names its store; {} does not", lock.describe());
            return Err(ConfigError::new("keep_history", problem));
        }
        let rules = Arc::new(rules);
        Ok(LeaderElectionConfig { lock, callbacks, rules, basics, step_down_cool_down, follower_interval })
    }
}
