//! Finds out whether a store is fit to elect leaders on.
//!
//! Not every store that speaks S3 honours the conditions of a write, and some do only as long as nobody
//! races: two candidates would lead at once, and nothing would tell. [`probe`] creates twice, updates
//! with a stale version, and lets many writers race for one object, over as many connections as the
//! store's client opens for them. Of those at most one may win.
//!
//! A store that passes has not been proven right. A store that fails must not elect a leader. A store
//! that answers with errors, because access is denied or it is throttled, is neither:
//! [`Verdict::Inconclusive`].
//!
//! ```
//! use leaderelection::MemoryStore;
//! use leaderelection::probe::{ProbeConfig, Verdict, probe};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let report = probe(&MemoryStore::new(), &ProbeConfig::default()).await;
//! println!("{report}");
//! assert_eq!(report.verdict(), Verdict::Fit);
//! # }
//! ```
//!
//! An elector makes its candidacy depend on it with
//! [`require_probe`](crate::LeaderElectionConfigBuilder::require_probe).

mod calls;
mod check;
mod cleaning;
mod config;
mod racing;
mod report;
mod run;
mod sequential;

use crate::store::ConditionalStore;

use calls::Prober;

pub use check::{Check, CheckKind, Outcome};
pub use config::ProbeConfig;
pub use report::{Latency, ProbeReport, Verdict};

/// Probes `store`, with objects of its own that are deleted again.
///
/// It reads, writes and deletes under the prefix of `config` and nowhere else, and needs leave to do so
/// (on S3 `s3:DeleteObject` too; without it, [`leftovers`](ProbeReport::leftovers) names what stayed
/// behind). By default it makes some 320 requests, 16 at a time.
///
/// # Errors
///
/// None: what goes wrong is in the report.
///
/// # Cancellation
///
/// It runs no task of its own. Dropping the future stops it; the objects of the check that was running
/// stay behind.
pub async fn probe(store: &dyn ConditionalStore, config: &ProbeConfig) -> ProbeReport {
    let prober = Prober::new(store, config);
    let began = config.clock.now();
    let mut checks = Vec::new();
    tokio::select! {
        biased;
        () = prober.run(&mut checks) => {}
        () = config.clock.sleep_until(began + config.time_limit) => prober.out_of_time(&mut checks),
    }
    prober.clean_up().await;
    prober.report(checks, began)
}
