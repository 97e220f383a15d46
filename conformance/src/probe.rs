//! The probe: checks on a running store, and a verdict.

mod calls;
mod check;
mod cleaning;
mod config;
mod creating;
mod ledger;
mod measuring;
mod racing;
mod report;
mod run;
mod sequential;

use std::sync::Arc;

use leaderelection::implement::ConditionalStore;
use leaderelection::lock::TimeLimit;
use leaderelection_sequenced::CreateOnlyStore;

pub(crate) use calls::Prober;
pub(crate) use check::{Finding, Stopped};

pub use check::{Check, CheckKind, Outcome};
pub use config::{ProbeConfig, is_object_of_probe};
pub use measuring::{Measured, measure};
pub use report::{Latency, ProbeReport, StoreKind, Verdict};

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
    run(Prober::new(Arc::new(store), config), config).await
}

/// Probes a store that can only create: its creations, its listings, and the conditional writes that a
/// [`SequencedStore`](leaderelection_sequenced::SequencedStore) makes of them.
///
/// A second creation of one key finds stores that ignore the condition, as some do in buckets with versions. Creators that
/// list find stores whose listings are late. All else is as for [`probe`], and a probe makes some five times as many
/// requests.
///
/// # Errors
///
/// None: the report contains every error.
///
/// # Cancellation
///
/// The same as for [`probe`].
pub async fn probe_create_only(objects: impl CreateOnlyStore, config: &ProbeConfig) -> ProbeReport {
    run(Prober::of_creations(Arc::new(objects), config), config).await
}

async fn run(prober: Prober, config: &ProbeConfig) -> ProbeReport {
    let began = config.clock.now();
    let mut checks = Vec::new();
    let limit = TimeLimit::new(config.time_limit).on_clock(Arc::clone(&config.clock));
    let is_out_of_time = limit.answer_since(began, prober.run(&mut checks)).await.is_err();
    if is_out_of_time {
        prober.out_of_time(&mut checks);
    }
    let last_error = prober.with_ledger(|ledger| ledger.last_error.clone().filter(|_| ledger.fails));
    prober.clean_up().await;
    ProbeReport { is_out_of_time, last_error, ..prober.report(checks, began) }
}
