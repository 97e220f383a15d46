//! The settings that electors and sessions share, with their defaults, their documentation and their checks.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::election::ElectionConfig;
use crate::history::Retention;
use crate::history::writer::HistoryWriter;
use crate::lock::bounded::TimeLimit;
use crate::lock::{advertised, identity};
use crate::store::ConditionalStore;
use crate::store::check::{Candidacy, StoreCheck};
use crate::timings::config_error::ConfigError;
use crate::timings::{Timings, Unchecked};

/// The settings of an elector or a session, not yet checked.
#[derive(Clone, Debug)]
pub(crate) struct SharedSettings {
    pub(crate) timings: Unchecked,
    /// The settings of the candidate. Its identity and its durations are missing until [`check`](Self::check) adds
    /// them.
    pub(crate) rules: ElectionConfig,
    pub(crate) request_timeout_setting: &'static str,
    pub(crate) store_check: Option<Arc<dyn StoreCheck>>,
    pub(crate) name: Option<String>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seed: Option<u64>,
    pub(crate) keep_history: Option<Retention>,
}

/// The settings of an elector or a session, checked.
#[derive(Clone, Debug)]
pub(crate) struct SharedConfig {
    pub(crate) timings: Timings,
    /// The time limit of each request.
    pub(crate) limit: TimeLimit,
    /// Writes the histories; `None` if none are kept.
    pub(crate) history: Option<Arc<HistoryWriter>>,
    pub(crate) store_check: Option<Arc<dyn StoreCheck>>,
    pub(crate) name: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seed: Option<u64>,
}

impl Default for SharedSettings {
    fn default() -> Self {
        Self {
            timings: Unchecked::default(),
            rules: ElectionConfig {
                release_on_cancel: true,
                ..ElectionConfig::new("", Duration::ZERO, Duration::ZERO, Duration::ZERO)
            },
            request_timeout_setting: "request_timeout",
            store_check: None,
            name: None,
            clock: Arc::new(SystemClock),
            seed: None,
            keep_history: None,
        }
    }
}

impl SharedSettings {
    /// Checks the settings of the candidate `identity`. `longest` is the longest lease that the lock accepts. A
    /// follower interval of `None` means the retry period. `describe` returns the name to use if none is set.
    pub(crate) fn check(
        self,
        identity: &str,
        longest: Duration,
        follower_interval: Option<Duration>,
        describe: impl FnOnce() -> String,
    ) -> Result<(ElectionConfig, SharedConfig), ConfigError> {
        let Self { rules, clock, keep_history, .. } = self;
        let timings = self.timings.check()?;
        let follower_interval = timings.check_for(longest, follower_interval)?;
        identity::check("identity", identity)?;
        let terms = keep_history.map(|history| history.terms);
        if let Some(terms) = terms.filter(|terms| !(1..=Retention::MOST_TERMS).contains(terms)) {
            let problem = format!("({terms} terms) must be from 1 to {} terms", Retention::MOST_TERMS);
            return Err(ConfigError::new("keep_history", problem));
        }
        rules.service.as_deref().map_or(Ok(()), |service| identity::check("service", service))?;
        for (setting, url) in [("advertise", &rules.advertised), ("advertise_to_clients", &rules.advertised_to_clients)]
        {
            url.as_deref().map_or(Ok(()), |url| advertised::check(setting, url))?;
        }
        if self.name.as_deref() == Some("") {
            return Err(ConfigError::new("name", "(\"\") must not be empty"));
        }
        let rules = ElectionConfig { identity: identity.to_owned(), ..rules.at(timings, follower_interval) };
        let limit = TimeLimit::new(timings.request_timeout())
            .of_setting(self.request_timeout_setting)
            .on_shared_clock(Arc::clone(&clock));
        let writer = |keep| HistoryWriter::new(keep, limit.clone(), timings.retry_period() * 32, Arc::clone(&clock));
        let (history, name) = (keep_history.map(writer), self.name.unwrap_or_else(describe));
        Ok((
            rules,
            SharedConfig { timings, limit, history, store_check: self.store_check, name, clock, seed: self.seed },
        ))
    }
}

impl SharedConfig {
    /// Describes the candidacy `id` to the check of the store. The lock is the object at `key`.
    pub(crate) fn candidacy<'a>(
        &'a self,
        (store, key): (Arc<dyn ConditionalStore>, &'a str),
        id: String,
    ) -> Candidacy<'a> {
        let (request_timeout, pause) = (self.timings.request_timeout(), self.timings.lease_duration());
        Candidacy { store, key, id, request_timeout, pause, clock: &self.clock }
    }
}

/// Implements, for a builder, the setters of the settings in its field `common`.
macro_rules! common_setters {
    ($builder:ty) => {
        impl $builder {
            /// Sets all four durations at once. The default is client-go's timings: 15 s, 10 s and 2 s.
            pub fn timings(mut self, timings: $crate::Timings) -> Self {
                self.common.timings = timings.into();
                self
            }

            /// Sets how long others wait after the last observed renewal before they take over. The default is 15 s.
            ///
            /// A crashed leader is replaced after about this time. Leaders stay exclusive as long as no clock
            /// runs faster than another by more than the factor `lease_duration / renew_deadline`.
            pub fn lease_duration(mut self, lease_duration: std::time::Duration) -> Self {
                self.common.timings.lease_duration = lease_duration;
                self
            }

            /// Sets how long one renewal keeps leadership, counted from before the send. The default is 10 s.
            pub fn renew_deadline(mut self, renew_deadline: std::time::Duration) -> Self {
                self.common.timings.renew_deadline = renew_deadline;
                self
            }

            /// Sets the pause between renewals, and the shortest pause between a follower's reads. The default is 2 s.
            ///
            /// This decides the number of requests: a leader or a session writes once per retry period, and a follower
            /// of one lock reads once per 1 to 2.2 retry periods.
            pub fn retry_period(mut self, retry_period: std::time::Duration) -> Self {
                self.common.timings.retry_period = retry_period;
                self
            }

            /// Sets how long to wait for the answer to a request, before its outcome counts as unknown. The default is
            /// a quarter of the renew deadline. The request timeout must be less than half of the renew deadline.
            ///
            /// The sum of the request timeout and the retry period should be less than the renew deadline. Otherwise a
            /// single slow renewal ends leadership. This is allowed, as in client-go, but the elector
            /// [warns](crate::LeaderElectionConfig::warnings).
            pub fn request_timeout(mut self, request_timeout: std::time::Duration) -> Self {
                self.common.timings.request_timeout = Some(request_timeout);
                self
            }

            /// Sets the name that errors about unanswered requests use for the request timeout, such as an option of
            /// the program's command line. The default is `request_timeout`.
            pub fn request_timeout_setting(mut self, setting: &'static str) -> Self {
                self.common.request_timeout_setting = setting;
                self
            }

            /// Requires that the store passes `check` once, before this candidate competes. The default is no check.
            ///
            /// If the store fails, this candidate does not compete, and the call that runs its election or session
            /// returns [`StoreUnfit`](crate::StoreUnfit). An inconclusive check is repeated after a lease duration.
            ///
            /// The crate `leaderelection-conformance` has such a check: `ProbeFirst`.
            pub fn store_check(mut self, check: impl $crate::store::StoreCheck) -> Self {
                self.common.store_check = Some(std::sync::Arc::new(check));
                self
            }

            /// Sets the name of the elector or the session in logs and metrics. The default is the name of the lock, or
            /// of the session's prefix in its store.
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.common.name = Some(name.into());
                self
            }

            /// Names the service that owns this lock, for example the program, so that two deployments notice if they
            /// use one lock by accident. Unset by default.
            ///
            /// The first write of each term puts the service into the field `purpose` of the record, and later
            /// candidates keep it there. A candidate that finds another service there refuses to lead, and says so in
            /// its log and its status. If the candidate or the record has no service, nothing is compared. To rename a
            /// service, stop its replicas, and call [`force_release`](crate::admin::force_release). No promise about
            /// leadership depends on the service.
            pub fn service(mut self, service: impl Into<String>) -> Self {
                self.common.rules.service = Some(service.into());
                self
            }

            /// Keeps a [history](crate::history) of each lock: who led when, and why each term ended. Off by default.
            ///
            /// The history is a small object beside the lock's object: its key is the lock's key plus `.history`. A
            /// leader adds its term when the term ends. If it has crashed, the next leader adds that term. This costs
            /// one additional read and one write per term. The writes are retried for some minutes, and never delay or
            /// end a term. An election that ends waits for the last write, for four request timeouts at most.
            ///
            /// A lock of several parts has a history beside each part. A Kubernetes Lease has none.
            pub fn keep_history(mut self, keep: $crate::history::Retention) -> Self {
                self.common.keep_history = Some(keep);
                self
            }

            /// Writes `url` into the record while this candidate leads, so that others can reach the leader: see
            /// [`LeaderHandle::leader_address`](crate::LeaderHandle::leader_address). By default, no address is
            /// written. A session writes the URL into its own record, and into the records of the locks that it takes.
            ///
            /// The URL begins with `https://` or `http://`. Everyone who can read the lock can read it. The URL counts
            /// only in the term of its leader. No decision of the election depends on it.
            pub fn advertise(mut self, url: impl Into<String>) -> Self {
                self.common.rules.advertised = Some(url.into());
                self
            }

            /// Sets the address advertised to clients, if it differs from the one that peers use. Clients find it as
            /// [`LeaderHandle::client_address`](crate::LeaderHandle::client_address). The default is the URL of
            /// [`advertise`](Self::advertise). Unless the lock belongs to a session, a running elector can
            /// [change](crate::LeaderHandle::advertise_to_clients) it.
            pub fn advertise_to_clients(mut self, url: impl Into<String>) -> Self {
                self.common.rules.advertised_to_clients = Some(url.into());
                self
            }

            /// Replaces the machine's clock, for tests.
            pub fn clock(mut self, clock: impl $crate::clock::Clock) -> Self {
                self.common.clock = std::sync::Arc::new(clock);
                self
            }

            /// Fixes all random choices, for tests. Give each process its own seed, or their write ids would be equal.
            #[cfg(feature = "test-util")]
            pub fn seed(mut self, seed: u64) -> Self {
                self.common.seed = Some(seed);
                self
            }
        }
    };
}

pub(crate) use common_setters;
