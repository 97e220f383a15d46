//! Tests of stores, which show whether a store is fit for leader election.
//!
//! [`leaderelection`] is exactly as exclusive as its store: of any number of writers that name the same
//! version, at most one may succeed. This crate checks a store in three ways.
//!
//! # For operators: the probe
//!
//! Not every store that speaks S3 enforces the conditions of a write, and some stores enforce them only without
//! concurrent writers. On such a store, two candidates would lead at once without any sign of it. [`probe()`] creates
//! twice, updates with a stale version, and lets many writers race for one object, over as many connections as the
//! store's client opens. At most one of those writers may win.
//!
//! A passed probe does not prove that a store is correct. A store that fails must not elect a leader. A store
//! that answers with errors, because access is denied or the store is throttled, gets neither verdict but
//! [`Verdict::Inconclusive`].
//!
//! ```
//! use leaderelection::MemoryStore;
//! use leaderelection_conformance::{ProbeConfig, Verdict, probe};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let report = probe(MemoryStore::new(), &ProbeConfig::default()).await;
//! println!("{report}");
//! assert_eq!(report.verdict(), Verdict::Fit);
//! # }
//! ```
//!
//! # For programs: no candidacy without a probe
//!
//! [`ProbeFirst`] makes an elector probe its store before it first competes.
//!
//! ```
//! use leaderelection::{LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
//! use leaderelection_conformance::ProbeFirst;
//!
//! # fn main() -> Result<(), leaderelection::ConfigError> {
//! let lock = MemoryLock::new(MemoryStore::new(), "locks/scheduler", "node-1");
//! let config =
//!     LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).store_check(ProbeFirst::new()).build()?;
//! # drop(config);
//! # Ok(())
//! # }
//! ```
//!
//! # For authors of stores and locks: the suites
//!
//! [`check_store`] holds a [`ConditionalStore`](leaderelection::implement::ConditionalStore) to its contract,
//! [`check_lock`] an [`ObjectStoreBasedLock`](leaderelection::ObjectStoreBasedLock). Both make the checks of the
//! probe, and the first makes others. They panic with the place of their objects, what was done there, and the clause
//! of the contract that this breaks. Races are run many times, and power is never cut: a store that passes has not
//! been proven right. [`check_fence`] runs two leaders against a [`FencedObject`](leaderelection::fence::FencedObject)
//! on a store, in every order of their requests.
//!
//! ```
//! use leaderelection::{MemoryLock, MemoryStore};
//! use leaderelection_conformance::{Effort, check_lock, check_store};
//!
//! # #[tokio::main]
//! # async fn main() {
//! let store = MemoryStore::new();
//! check_store(store.clone(), "conformance", Effort::default()).await;
//! check_lock(move |key, identity| MemoryLock::new(store.clone(), key, identity), Effort::default()).await;
//! # }
//! ```

mod contract;
mod endpoints;
mod patience;
mod probe;
mod probe_first;
mod race;
mod suites;

pub use endpoints::Endpoints;
pub use probe::{
    Check, CheckKind, Latency, Measured, Outcome, ProbeConfig, ProbeReport, StoreKind, Verdict, is_object_of_probe,
    measure, probe, probe_create_only,
};
pub use probe_first::ProbeFirst;
pub use suites::{Duel, Effort, check_fence, check_lock, check_store};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
