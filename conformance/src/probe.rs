//! The probe: checks on a running store, and a verdict.

mod calls;
mod check;
mod cleaning;
mod config;
mod ledger;
mod racing;
mod report;
mod run;
mod sequential;

use std::sync::Arc;

use leaderelection::ConditionalStore;

use calls::Prober;

pub use check::{Check, CheckKind, Outcome};
pub use config::{ProbeConfig, is_object_of_probe};
pub use report::{Latency, ProbeReport, Verdict};

/// Probes `store`, with objects of its own that are deleted again.
///
/// The probe reads, writes and deletes only under the prefix of `config`, and needs permission to do so (on S3
/// `s3:DeleteObject` too; without it, [`leftovers`](ProbeReport::leftovers) names the remaining objects). By
/// default the probe makes some 320 requests, up to 64 at a time.
///
/// # Errors
///
/// None: the report contains every error.
///
/// # Cancellation
///
/// Each writer of a race is a task of its own, so that writers start at the same time on a runtime with several
/// threads. Dropping the future stops the probe and its tasks; the objects of the running check stay behind.
pub async fn probe(store: impl ConditionalStore, config: &ProbeConfig) -> ProbeReport {
    let prober = Prober::new(Arc::new(store), config);
    let began = config.clock.now();
    let mut checks = Vec::new();
    tokio::select! {
        biased;
        () = prober.run(&mut checks) => {}
        _ = config.clock.sleep_until(began + config.time_limit) => prober.out_of_time(&mut checks),
    }
    prober.clean_up().await;
    prober.report(checks, began)
}
