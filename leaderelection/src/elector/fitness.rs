//! `require_probe`: nobody competes on a store before it has passed the probe.

use std::sync::Arc;

use crate::config::LeaderElectionConfig;
use crate::election::EndReason;
use crate::probe::{Check, ProbeConfig, ProbeReport, Verdict, probe};

/// Whether the store has passed the probe.
#[derive(Debug, Default)]
pub(super) struct Fitness {
    shown: bool,
}

impl Fitness {
    /// Completes at once if no probe is required or the store has passed one, and otherwise when a probe
    /// is conclusive. `new_id` names each probe. Cancellation safe.
    pub(super) async fn demand(
        &mut self,
        config: &LeaderElectionConfig,
        mut new_id: impl FnMut() -> String,
    ) -> Result<(), EndReason> {
        while config.require_probe && !self.shown {
            // The builder has seen to it that there is a store.
            let Some((store, key)) = config.lock.object() else {
                return Err(EndReason::StoreUnfit { why: "the lock does not name its store".to_owned() });
            };
            let probe_config = ProbeConfig::new()
                .beside(key)
                .id(new_id())
                .request_timeout(config.request_timeout)
                .shared_clock(Arc::clone(&config.clock));
            // In a box, for it is large, and every election would carry it along.
            let report = Box::pin(probe(store, &probe_config)).await;
            let why = report.decisive().map(Check::to_string).unwrap_or_default();
            match report.verdict() {
                Verdict::Fit => {
                    log_fit(&report);
                    self.shown = true;
                }
                Verdict::Unfit => {
                    tracing::error!(%report, "the store failed the probe; nobody is elected on it");
                    return Err(EndReason::StoreUnfit { why });
                }
                Verdict::Inconclusive => {
                    let pause = config.rules.lease_duration;
                    tracing::warn!(
                        reason = why,
                        ?pause,
                        leftovers = report.leftovers().join(", "),
                        "the probe of the store is inconclusive; not competing before another one has passed"
                    );
                    config.clock.sleep_until(config.clock.now() + pause).await;
                }
            }
        }
        Ok(())
    }
}

fn log_fit(report: &ProbeReport) {
    let requests = report.requests();
    match report.leftovers() {
        [] => tracing::info!(requests, "the store passed the probe"),
        leftovers => tracing::warn!(
            requests,
            leftovers = leftovers.join(", "),
            "the store passed the probe, but objects of the probe may be left; delete them, and allow to delete"
        ),
    }
}
