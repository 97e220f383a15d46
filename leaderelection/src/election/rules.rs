//! The settings of a candidate.

use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::lease::Limits;
use leaderelection_protocol::policy::Pace;
use leaderelection_protocol::policy::failback_delay::FailbackTimes;

use crate::lock::record::PeerAddress;
use crate::timings::Timings;

/// The settings of one candidate. [`LeaderElectionConfig`](crate::LeaderElectionConfig) checks the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ElectionConfig {
    /// The name that the candidate writes into `holderIdentity`.
    pub identity: String,
    /// How long other candidates wait after they saw the lease renewed, before they acquire it.
    pub lease_duration: Duration,
    /// How long one write gives leadership, counted from before the write was sent.
    pub renew_deadline: Duration,
    /// The pause between renewals, and the shortest pause between a candidate's reads.
    pub retry_period: Duration,
    /// How long to wait for the answer to a request.
    pub request_timeout: Duration,
    /// The shortest pause between a candidate's reads while the leader renews its lease (rule 20).
    pub follower_interval: Duration,
    /// The longest pause between a candidate's reads while it gets the leader's messages (rule 16).
    pub background_interval: Duration,
    /// `true` if the candidate may take over a record with its identity at once, no matter which process wrote it (rule 2).
    pub reclaim_own_identity: bool,
    /// `true` if every end of a term releases the lease; `false` if only the reasons that
    /// [`TermEndReason::releases`](super::TermEndReason::releases) names do.
    pub release_on_cancel: bool,
    /// How long a cancelled candidate tries to release its lease after the end of its work, unless the lease expires
    /// earlier.
    pub release_patience: Duration,
    /// How far the store's clocks may disagree, including their resolution (rule 19); `None` to ignore the ages that the store reports.
    pub store_clock_slack: Option<Duration>,
    /// The rank of the candidate; 0 is the best (rule 23).
    pub rank: u8,
    /// `true` if the candidate asks a leader of a worse rank for the lease (rule 24).
    pub failback: bool,
    /// How often the fail-back delay may double (rule 24).
    pub failback_doublings: u8,
    /// The service that the candidate writes into the record of each of its terms; `None` if it writes none. No rule depends on
    /// it.
    pub service: Option<String>,
    /// The address that the candidate writes into the record while it holds the lease; `None` if it writes none. No rule
    /// depends on it.
    pub advertised: Option<String>,
    /// The address for clients in the record, if it differs from `advertised`. No rule depends on it.
    pub advertised_to_clients: Option<String>,
}

impl ElectionConfig {
    /// The default background interval.
    pub const BACKGROUND_INTERVAL: Duration = Duration::from_secs(30);

    /// How often the fail-back delay may double, by default.
    pub const FAILBACK_DOUBLINGS: u8 = 6;

    /// The default settings of the candidate `identity`. It does not reclaim its own identity, does not release its lease on cancellation,
    /// tries a release until the lease expires, and ignores ages that the store reports. Its background interval is 30 s, its follower
    /// interval is the retry period, and its request timeout is a quarter of the renew deadline.
    #[must_use]
    pub fn new(
        identity: impl Into<String>,
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Self {
        Self {
            identity: identity.into(),
            lease_duration,
            renew_deadline,
            retry_period,
            request_timeout: renew_deadline / 4,
            follower_interval: retry_period,
            background_interval: Self::BACKGROUND_INTERVAL,
            reclaim_own_identity: false,
            release_on_cancel: false,
            release_patience: lease_duration,
            store_clock_slack: None,
            rank: 0,
            failback: false,
            failback_doublings: Self::FAILBACK_DOUBLINGS,
            service: None,
            advertised: None,
            advertised_to_clients: None,
        }
    }

    /// Returns these settings with other durations, which may change while a candidate runs (rule 22).
    pub(crate) fn at(self, timings: Timings, follower_interval: Duration) -> Self {
        Self {
            lease_duration: timings.lease_duration(),
            renew_deadline: timings.renew_deadline(),
            retry_period: timings.retry_period(),
            request_timeout: timings.request_timeout(),
            follower_interval,
            release_patience: timings.release_patience(),
            ..self
        }
    }

    pub(crate) fn pace(&self) -> Pace {
        let Self { lease_duration, retry_period, follower_interval, .. } = *self;
        Pace { lease_duration, retry_period, follower_interval }
    }

    /// The durations that decide when the candidate asks for the lease (rule 24).
    pub(super) fn failback_times(&self) -> FailbackTimes {
        FailbackTimes { lease_duration: self.lease_duration, doublings: self.failback_doublings }
    }

    /// The durations that may change while a candidate runs (rule 22).
    pub(super) fn durations(&self) -> [Duration; 6] {
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        let Self { request_timeout, follower_interval, release_patience, .. } = *self;
        [lease_duration, renew_deadline, retry_period, request_timeout, follower_interval, release_patience]
    }

    /// The durations that count from the send of a write (rules 4 and 22).
    pub(crate) fn limits(&self) -> Limits {
        Limits { lease_duration: self.lease_duration, renew_deadline: self.renew_deadline }
    }

    /// How long a version has certainly existed, if the store reported `age` with its answer (rule 19).
    pub(crate) fn minimum_age(&self, age: Option<Duration>) -> Duration {
        age.zip(self.store_clock_slack).map_or(Duration::ZERO, |(age, slack)| age.saturating_sub(slack))
    }

    /// The addresses for the next record of a term; `None` if there are none. If they equal those of the last record,
    /// `before`, they are shared, because every renewal carries them.
    pub(crate) fn peer(&self, term: u64, before: Option<&Arc<PeerAddress>>) -> Option<Arc<PeerAddress>> {
        let (url, clients) = (self.advertised.as_deref().unwrap_or_default(), self.advertised_to_clients.as_deref());
        if url.is_empty() && clients.is_none() {
            return None;
        }
        let retry_period = u64::try_from(self.retry_period.as_millis()).ok().map(Duration::from_millis);
        let is_same = |before: &&Arc<PeerAddress>| {
            (before.url.as_str(), before.term, before.clients.as_deref(), before.retry_period)
                == (url, term, clients, retry_period)
        };
        let changed = || {
            Arc::new(PeerAddress { clients: clients.map(str::to_owned), retry_period, ..PeerAddress::new(url, term) })
        };
        Some(before.filter(is_same).map_or_else(changed, Arc::clone))
    }

    /// The last part of a lease, in which the leader's work must no longer run (rule 8).
    #[cfg(feature = "sessions")]
    pub(crate) fn stop_margin(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline) / 8
    }
}
