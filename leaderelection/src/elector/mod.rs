//! The elector: it drives the [`election`](crate::election) against a lock, and runs the callbacks.

pub(crate) mod anomalies;
mod compete;
#[cfg(feature = "metrics")]
mod describe;
mod driver;
mod elector_listeners;
pub(crate) mod entropy;
mod front;
#[cfg_attr(not(feature = "peers"), allow(dead_code, unreachable_pub, reason = "without it, nobody opens the channel"))]
pub(crate) mod line;
pub(crate) mod listeners;
mod log;
#[cfg(feature = "metrics")]
pub(crate) mod meters;
#[cfg(not(feature = "metrics"))]
#[path = "no_meters.rs"]
pub(crate) mod meters;
pub(crate) mod new_leader;
pub(crate) mod output;
#[cfg(feature = "peers")]
pub mod peers;
pub(crate) mod report;
pub(crate) mod request;
mod rollback_detector;
pub(crate) mod run_error;
pub(crate) mod service;
mod span;
pub(crate) mod store_check;
pub(crate) mod term;
pub(crate) mod term_runner;
pub(crate) mod terms;
pub(crate) mod try_lead;
mod wall_clock;
pub(crate) mod work;

#[cfg(feature = "metrics")]
pub use self::describe::describe_metrics;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tracing::Instrument;

use crate::clock::Clock;
use crate::config::LeaderElectionConfig;
use crate::config::callbacks::OnStart;
use crate::election::RunOutcome;
use crate::handle::health::HealthCheck;
use crate::handle::status::LeaderHandle;
use crate::history::writer::HistoryWriter;
use crate::util::stop::{OwnedStop, Stop};

pub(crate) use compete::Compete;
use driver::Driver;
use elector_listeners::ElectorListeners;
pub use front::Elector;
#[cfg(feature = "peers")]
use line::PeerChannel;
pub use run_error::{ElectionError, RunError};
pub use service::CampaignError;
pub use terms::Term;
use terms::Terms;
pub use try_lead::TryLeadError;
use work::StartWork;

/// Competes for a lock, leads while it holds the lock, and calls the callbacks.
///
/// This type corresponds to client-go's `LeaderElector`. A program without callbacks calls [`next_term`](Elector::next_term) for each term.
///
/// The election is the future that [`run`](Elector::run), [`campaign`](Elector::campaign) or
/// [`run_while_leading`](Elector::run_while_leading) returns. The future makes progress only while it is polled. The leader's work runs
/// on a task of its own. While a caller holds a [`Term`], the election runs on a task, too. The elector needs a tokio runtime with time
/// enabled.
///
/// # Cancellation
///
/// When the `shutdown` future of a call completes, the election stops gracefully: the work is told to stop, the elector
/// waits for the end of the work, and the lease is released, unless [configured
/// otherwise](crate::LeaderElectionConfigBuilder::release_on_cancel). If the election's future is dropped instead,
/// leadership ends at once, the work is dropped, `on_stop_leading` is called when the work is gone, and the lease
/// expires. Either way, a call of `on_new_leader` that is in flight completes, because it runs on a thread of its own.
#[derive(Debug)]
pub struct DefaultLeaderElector {
    driver: Arc<tokio::sync::Mutex<Driver>>,
    terms: Terms,
    listeners: Arc<ElectorListeners>,
    config: Arc<LeaderElectionConfig>,
    span: tracing::Span,
}

impl DefaultLeaderElector {
    /// Creates an elector for a checked configuration.
    #[must_use]
    pub fn new(config: LeaderElectionConfig) -> Self {
        // The level is error, so that a filter that shows an event never hides the event's span.
        let (lock, identity) = (config.lock.describe(), &config.rules.identity);
        let span = tracing::error_span!(
            "leader_election",
            leader_election.name = config.basics.name,
            leader_election.lock = lock,
            leader_election.identity = identity,
        );
        let config = Arc::new(config);
        let listeners = Arc::new(ElectorListeners::new(Arc::clone(&config)));
        let driver = Driver::new(Arc::clone(&config), Arc::clone(&listeners));
        let driver = Arc::new(tokio::sync::Mutex::new(driver));
        Self { driver, terms: Terms::default(), listeners, config, span }
    }

    /// Returns the channel to the peers of this elector: see [`peers`](crate::peers).
    #[cfg(feature = "peers")]
    #[must_use]
    pub fn peer_channel(&self) -> PeerChannel {
        self.listeners.peers.open(&self.config, &self.listeners.tuning)
    }
}

impl Elector for DefaultLeaderElector {
    fn handle(&self) -> LeaderHandle {
        let (identity, clock) = (self.config.rules.identity.as_str().into(), Arc::clone(&self.config.basics.clock));
        let ElectorListeners { status, tuning, .. } = &*self.listeners;
        LeaderHandle::new(status.watch(), identity, clock, Some(Arc::clone(tuning)), None)
    }

    fn health_check(&self, tolerated_delay: Duration) -> HealthCheck {
        let (name, lease_duration) = (self.config.basics.name.clone(), self.config.rules.lease_duration);
        HealthCheck::new(&self.handle(), name, lease_duration, tolerated_delay)
    }
}

impl Compete for DefaultLeaderElector {
    fn whole<T: Send, F: Future<Output = T> + Send>(&self, election: F) -> impl Future<Output = T> + Send {
        whole(self.config.basics.history.clone(), self.span.clone(), election)
    }

    fn cool_down(&self) -> Duration {
        self.config.step_down_cool_down.unwrap_or_else(|| self.listeners.tuning.timings().lease_duration())
    }

    fn on_start(&self) -> Option<&Arc<OnStart>> {
        self.config.callbacks.on_start_leading.as_ref()
    }

    fn terms(&self) -> &Terms {
        &self.terms
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.config.basics.clock
    }

    fn compete<'a>(
        &'a self,
        stop: Stop<'a>,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = Result<RunOutcome, ElectionError>> + Send + 'a {
        Driver::run_term(&self.driver, stop, work, stand_back)
    }

    fn candidacy(
        &self,
        mut stop: OwnedStop,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = (Result<RunOutcome, ElectionError>, OwnedStop)> + Send + 'static {
        let driver = Arc::clone(&self.driver);
        let election = async move {
            let outcome = Driver::run_term(&driver, stop.as_mut(), work, stand_back).await;
            (outcome, stop)
        };
        whole(self.config.basics.history.clone(), self.span.clone(), election)
    }
}

/// Runs `election` in `span`, and then waits for the last write of the history.
fn whole<T: Send>(
    history: Option<Arc<HistoryWriter>>,
    span: tracing::Span,
    election: impl Future<Output = T> + Send,
) -> impl Future<Output = T> + Send {
    // Not an async block, which would store the election twice: as its argument, and as the future that it awaits.
    let whole = election.then(|end| async move {
        if let Some(history) = history {
            history.written().await;
        }
        end
    });
    whole.instrument(span)
}
