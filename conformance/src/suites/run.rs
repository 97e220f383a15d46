//! A probe whose first finding ends a suite.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock, LocalInstant};
use leaderelection::implement::ConditionalStore;
use tokio::time::{Instant, sleep_until};

use super::effort::Effort;
use crate::contract::{Breach, HONEST_ERRORS};
use crate::probe::{CheckKind, Finding, Outcome, ProbeConfig, Prober, Stopped};
use crate::race::Refusal;

/// No suite is about latency: a request may wait in the queue of a store that a race has filled.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A suite is a probe that nothing interrupts, on a clock that tests can pause.
pub(super) fn prober(store: Arc<dyn ConditionalStore>, prefix: &str, effort: Effort) -> Prober {
    let Effort { rounds, racers } = effort;
    let config = ProbeConfig::new().prefix(prefix).id("suite".to_owned()).writers(racers).rounds(rounds);
    Prober::new(store, &config.request_timeout(REQUEST_TIMEOUT).clock(Timer(Instant::now())))
}

/// tokio's clock, since the start of the suite.
#[derive(Debug)]
struct Timer(Instant);

#[async_trait]
impl Clock for Timer {
    fn now(&self) -> LocalInstant {
        LocalInstant::default() + self.0.elapsed()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        Utc::now()
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        sleep_until(self.0 + deadline.saturating_since(LocalInstant::default())).await;
        self.now()
    }
}

/// Makes a check of the probe, and ends the suite unless the store passes. Only a store that has no deletions with a condition may
/// refuse its check; then this returns `false`.
pub(super) async fn must_pass(prober: &Prober, kind: CheckKind) -> bool {
    let (check, is_refusal) = prober.check(kind).await;
    let may_go_on = check.outcome() == Outcome::Passed || is_refusal && kind == CheckKind::StaleDelete;
    assert!(may_go_on, "{}: {check} ({})", prober.place(), check.outcome());
    prober.sweep().await;
    !is_refusal
}

/// Ends the suite unless the store kept its contract.
pub(super) fn passed<T>(prober: &Prober, finding: Finding<T>) -> T {
    let breach = match finding {
        Ok(seen) => return seen,
        Err(Stopped::Broken(breach)) => breach,
        Err(Stopped::Refused(what)) => Breach::new(what, HONEST_ERRORS),
        Err(Stopped::Unclear(error)) => {
            Breach::new(format!("a call must succeed here: {:?}", Refusal::from(error)), HONEST_ERRORS)
        }
    };
    panic!("{}: {breach}", prober.place())
}
