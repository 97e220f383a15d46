//! A store check that allows no candidacy on a store that has not passed the probe.

use std::sync::Arc;

use async_trait::async_trait;
use leaderelection::implement::{Candidacy, StoreCheck, StoreFitness};

use crate::probe::{Check, ProbeConfig, ProbeReport, Verdict, probe};

/// A [`StoreCheck`] that [probes](probe()) the store once, before the elector first competes. Pass it to
/// [`store_check`](leaderelection::LeaderElectionConfigBuilder::store_check). The probe makes some 320
/// requests.
///
/// On a store that fails, no leader is elected, and the report is logged as an error. An inconclusive probe is
/// logged as a warning and repeated after a lease duration.
///
/// The probe's objects are in a folder [beside](ProbeConfig::beside) the lock. Allow the process to delete
/// them.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ProbeFirst;

impl ProbeFirst {
    /// Creates the check with the [default settings](ProbeConfig::new) of a probe.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl StoreCheck for ProbeFirst {
    async fn check(&self, candidacy: Candidacy<'_>) -> StoreFitness {
        let config = ProbeConfig::new()
            .beside(candidacy.key)
            .id(candidacy.id)
            .request_timeout(candidacy.request_timeout)
            .clock(Arc::clone(candidacy.clock));
        let report = probe(candidacy.store, &config).await;
        let why = report.decisive().map(Check::to_string).unwrap_or_default();
        match report.verdict() {
            Verdict::Fit => {
                log_fit(&report);
                StoreFitness::Fit
            }
            Verdict::Unfit | Verdict::Unusable => {
                tracing::error!(%report, "the store failed the probe; nobody is elected on it");
                StoreFitness::Unfit { why }
            }
            Verdict::Inconclusive => {
                tracing::warn!(
                    reason = why,
                    pause = ?candidacy.pause,
                    leftovers = report.leftovers().join(", "),
                    "the probe of the store is inconclusive; not competing before another one has passed"
                );
                StoreFitness::Inconclusive { why }
            }
        }
    }
}

fn log_fit(report: &ProbeReport) {
    let requests = report.requests();
    match report.leftovers() {
        [] => tracing::info!(requests, "the store passed the probe"),
        leftovers => tracing::warn!(
            requests,
            leftovers = leftovers.join(", "),
            "the store passed the probe, but objects of the probe may be left; delete them, and check whether deletions are allowed"
        ),
    }
}
