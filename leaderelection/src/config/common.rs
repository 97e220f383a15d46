//! The settings that a lease and a session share: each has its default, its documentation and its check here.

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

/// The settings of a lease or a session, not yet checked.
#[derive(Clone, Debug)]
pub(crate) struct SharedSettings {
    pub(crate) timings: Unchecked,
    /// The rules of the candidate, whose identity and durations the check adds.
    pub(crate) rules: ElectionConfig,
    pub(crate) request_timeout_setting: &'static str,
    pub(crate) store_check: Option<Arc<dyn StoreCheck>>,
    pub(crate) name: Option<String>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seed: Option<u64>,
    pub(crate) keep_history: Option<Retention>,
}

/// The settings of a lease or a session, checked.
#[derive(Clone, Debug)]
pub(crate) struct SharedConfig {
    pub(crate) timings: Timings,
    /// The limit of each request.
    pub(crate) limit: TimeLimit,
    /// The writer of histories, if they are kept.
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
    /// Checks the settings of the candidate `identity` for a lock whose longest lease is `longest`. A follower interval of
    /// `None` is the retry period. `describe` names a candidate without a name.
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
        let keeper = |keep| HistoryWriter::new(keep, limit.clone(), timings.retry_period() * 32, Arc::clone(&clock));
        let (history, name) = (keep_history.map(keeper), self.name.unwrap_or_else(describe));
        Ok((
            rules,
            SharedConfig { timings, limit, history, store_check: self.store_check, name, clock, seed: self.seed },
        ))
    }
}

impl SharedConfig {
    /// Describes the candidacy `id` for the lock at this place to the check of the store.
    pub(crate) fn candidacy<'a>(
        &'a self,
        (store, key): (Arc<dyn ConditionalStore>, &'a str),
        id: String,
    ) -> Candidacy<'a> {
        let (request_timeout, pause) = (self.timings.request_timeout(), self.timings.lease_duration());
        Candidacy { store, key, id, request_timeout, pause, clock: &self.clock }
    }
}

/// Gives a builder the setters of its field `common`.
macro_rules! common_setters {
    ($builder:ty) => {
        impl $builder {
            /// Sets all four durations at once. The default is client-go's timings: 15 s, 10 s and 2 s.
            pub fn timings(mut self, timings: $crate::Timings) -> Self {
                self.common.timings = timings.into();
                self
            }

            /// Sets the time that others wait after the last observed renewal before they take over. The default is 15 s.
            ///
            /// A crashed leader is replaced after about this time. Leaders stay exclusive as long as no clock
            /// runs faster than another by more than `lease_duration / renew_deadline`.
            pub fn lease_duration(mut self, lease_duration: std::time::Duration) -> Self {
                self.common.timings.lease_duration = lease_duration;
                self
            }

            /// Sets the time for which one renewal keeps leadership, counted from before the renewal was sent. The default
            /// is 10 s.
            pub fn renew_deadline(mut self, renew_deadline: std::time::Duration) -> Self {
                self.common.timings.renew_deadline = renew_deadline;
                self
            }

            /// Sets the pause between renewals, and the shortest pause between reads of another's renewals. The default is
            /// 2 s.
            ///
            /// The retry period decides the number of requests. A leader, or a session, writes once per retry period. A
            /// candidate for one lock reads once per 1 to 2.2 retry periods.
            pub fn retry_period(mut self, retry_period: std::time::Duration) -> Self {
                self.common.timings.retry_period = retry_period;
                self
            }

            /// Sets the time after which the outcome of a request counts as unknown. The default is a quarter of the renew
            /// deadline. The time must be less than half of the renew deadline.
            ///
            /// The sum of this time and the retry period should stay below the renew deadline. Otherwise a single slow
            /// renewal ends leadership. This is allowed, as in client-go, and causes one of an elector's
            /// [warnings](crate::LeaderElectionConfig::warnings).
            pub fn request_timeout(mut self, request_timeout: std::time::Duration) -> Self {
                self.common.timings.request_timeout = Some(request_timeout);
                self
            }

            /// Names the setting of the program that holds the request timeout, such as an option of its command line, for
            /// the error of a request without an answer. The default is `request_timeout`.
            pub fn request_timeout_setting(mut self, setting: &'static str) -> Self {
                self.common.request_timeout_setting = setting;
                self
            }

            /// Demands that the store pass `check` once, before anybody competes. The default is no check.
            ///
            /// On a store that fails, nobody is elected: what runs the election or the session ends with
            /// [`StoreUnfit`](crate::StoreUnfit). An inconclusive check is repeated after a lease duration.
            ///
            /// The crate `leaderelection-conformance` has such a check: `ProbeFirst`.
            pub fn store_check(mut self, check: impl $crate::store::StoreCheck) -> Self {
                self.common.store_check = Some(std::sync::Arc::new(check));
                self
            }

            /// Sets the name in logs, and in the metrics of an elector. The default is the name of the lock, or of the
            /// session's prefix in its store.
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.common.name = Some(name.into());
                self
            }

            /// Names the service that owns this lock, such as the name of the program, so that two deployments notice that they
            /// use one lock by accident. Unset by default.
            ///
            /// The first write of each term puts the service into the field `purpose` of the record, and later candidates keep
            /// it. A candidate that reads another service than its own refuses to lead, and its log and its status say so. A
            /// candidate without a service refuses nobody, and a record without one is for everybody. To rename the service of
            /// a lock, stop the replicas, and let [`force_release`](crate::admin::force_release) end the old claim. No promise
            /// about leadership depends on the service.
            pub fn service(mut self, service: impl Into<String>) -> Self {
                self.common.rules.service = Some(service.into());
                self
            }

            /// Keeps a [history](crate::history) of each lock: who led when, and why each term ended. The default is none.
            ///
            /// It is one small object beside that of the lock, under the lock's key with `.history`. The leader adds its term at
            /// the end. If it cannot, because it has crashed, the next leader adds that term. An ended term costs one read and one
            /// write, beside the requests of the election. The writes are tried again for some minutes, and never delay or
            /// end a term. An election that ends waits for the last of them, for four request timeouts at most.
            ///
            /// A lock that is made of several has a history beside each. A Kubernetes Lease has none.
            pub fn keep_history(mut self, keep: $crate::history::Retention) -> Self {
                self.common.keep_history = Some(keep);
                self
            }

            /// Writes `url` into the record while this candidate leads, so that others can reach the leader: see
            /// [`LeaderHandle::leader_address`](crate::LeaderHandle::leader_address). The default is to write no address. A
            /// session writes it into its own record, and into that of each lock that it takes.
            ///
            /// The URL begins with `https://` or `http://`, and everyone who can read the lock can read it. It is bound to the
            /// term, so no later leader carries it along. No decision of the election depends on it.
            pub fn advertise(mut self, url: impl Into<String>) -> Self {
                self.common.rules.advertised = Some(url.into());
                self
            }

            /// Writes another `url` into the record for clients, who find it as
            /// [`LeaderHandle::client_address`](crate::LeaderHandle::client_address). The default is that of
            /// [`advertise`](Self::advertise), which peers use, too. An elector that is not a session's can
            /// [change](crate::LeaderHandle::advertise_to_clients) it while it runs.
            pub fn advertise_to_clients(mut self, url: impl Into<String>) -> Self {
                self.common.rules.advertised_to_clients = Some(url.into());
                self
            }

            /// Sets another clock than the machine's, for tests.
            pub fn clock(mut self, clock: impl $crate::clock::Clock) -> Self {
                self.common.clock = std::sync::Arc::new(clock);
                self
            }

            /// Fixes all random choices, for tests. Processes with equal seeds would write equal write ids.
            #[cfg(feature = "test-util")]
            pub fn seed(mut self, seed: u64) -> Self {
                self.common.seed = Some(seed);
                self
            }
        }
    };
}

pub(crate) use common_setters;
