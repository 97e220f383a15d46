//! Leader election for processes that have an object store and nothing else.
//!
//! The semantics are those of client-go's `leaderelection`, on a [`LeaderElectionRecord`] in one object, which is
//! written only by compare-and-swap.
//!
//! Guaranteed: at most one candidate is inside its leadership window at any moment. Wall clocks may be wrong, but no
//! node's clock may *run* more than lease duration / renew deadline times as fast as another's. Guaranteed whatever the
//! clocks do: every term has a larger fencing token than all terms before it. If the lock's object is deleted, neither is
//! guaranteed any more.
//!
//! Not guaranteed: losing leadership cannot undo a request that has already been sent, or stop a thread that is stuck in
//! a system call. If two leaders must never write to a resource, the resource has to check the
//! [fencing token](Leadership::fencing_token) and to reject smaller ones: see [`fence`].
//!
//! # Example
//!
#![cfg_attr(not(doctest), doc = include_str!("../docs/start.md"))]
//!
//! `leaderelection-backends` also supports Google Cloud Storage, Azure Blob Storage and a local directory. A [`MemoryStore`]
//! replaces them in tests, and in this longer example:
//!
//! ```
//! use std::time::Duration;
//! use leaderelection::{
//!     CancellationToken, DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, MemoryLock,
//!     MemoryStore, unique_identity,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let shutdown = CancellationToken::new();
//! let done = shutdown.clone();
//! let lock = MemoryLock::new(MemoryStore::new(), "locks/scheduler", unique_identity());
//! let callbacks = LeaderCallbacks::new()
//!     .on_start_leading(move |leadership: Leadership| {
//!         let done = done.clone();
//!         async move {
//!             println!("leading with fencing token {}", leadership.fencing_token());
//!             done.cancel();
//!             leadership.lost().await;
//!         }
//!     })
//!     .on_stop_leading(|| println!("stopped leading"))
//!     .on_new_leader(|identity| println!("{identity} leads"));
//! let config = LeaderElectionConfig::builder(lock, callbacks)
//!     .lease_duration(Duration::from_secs(15))
//!     .renew_deadline(Duration::from_secs(10))
//!     .retry_period(Duration::from_secs(2))
//!     .build()?;
//! let elector = DefaultLeaderElector::new(config);
//! let outcome = elector.run(shutdown.cancelled_owned()).await?;
//! assert_eq!(outcome.fencing_token().map(u64::from), Some(1));
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! - [`DefaultLeaderElector`] competes and leads. [`LeaderElectionConfig::builder`] creates its configuration.
//!   [`next_term`](Elector::next_term) leads without callbacks: it returns a [`Term`], which lasts at most until the caller drops it.
//! - [`Leadership`] tells a leader's work whether its term is valid. [`LeaderHandle`] tells the rest of the process who
//!   leads. [`HealthCheck`] is for the liveness probe, and [`Probes`] answers all probes on any HTTP server.
//! - [`campaign_with`](Elector::campaign_with) also runs a service beside the campaign, whether or not this candidate leads.
//! - [`shutdown_signal`] completes on SIGTERM or Ctrl-C.
//! - [`implement`] has the traits for a store or a lock of your own. The crate `leaderelection-conformance` has the
//!   test suite that a store has to pass, and a probe that tests if a running store enforces conditions.
//!   [`store_check`](LeaderElectionConfigBuilder::store_check) runs such a probe before the first election.
//! - [`admin`] is for operators: it transfers a lock, releases it by force, or creates it again.
//! - [`fence`] lets a resource reject the requests of earlier leaders.
//! - [`protocol`] has the rules by which candidates compete.
//!
//! The crate root has the types that most programs need. The others are in the modules [`causes`], [`config`], [`handle`],
//! [`history`], [`lock`], [`sessions`] and [`timings`].
//!
//! Logs are `tracing` events in a span `leader_election` with the fields `leader_election.name`, `.lock` and `.identity`: info
//! if leadership changes, warnings and errors if the store or the work fails, and debug for each request. Metrics go through
//! the [`metrics`](https://docs.rs/metrics) facade, under client-go's names where client-go has them. An elector registers its
//! metrics when it begins to compete, so install the recorder before that.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod clock;
pub mod config;
#[doc(hidden)]
pub mod election;
mod elector;
pub mod fence;
pub mod handle;
pub mod history;
pub mod implement;
mod leadership;
pub mod lock;
#[cfg(feature = "majority")]
#[doc(hidden)]
pub mod majority;
mod operate;
#[doc = include_str!("../docs/protocol.md")]
pub mod protocol {}
#[cfg(feature = "sessions")]
pub mod sessions;
mod store;
mod term;
pub mod timings;
mod util;

#[cfg(feature = "peers")]
pub use elector::peers;
pub use operate::admin;
/// Stops an election: pass its `cancelled_owned()` as `shutdown`.
pub use tokio_util::sync::CancellationToken;
#[cfg(feature = "signal")]
pub use util::shutdown::{self, shutdown_signal};
pub use util::{causes, names};

#[cfg(feature = "serde")]
pub use config::LeaderElectionSettings;
pub use config::{LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder};
#[cfg(feature = "metrics")]
pub use elector::describe_metrics;
pub use elector::{CampaignError, DefaultLeaderElector, ElectionError, Elector, RunError, Term, TryLeadError};
pub use handle::{HealthCheck, LeaderHandle, LeaderStatus, Probes};
pub use leadership::Leadership;
pub use lock::{
    LeaderElectionRecord, LockError, MemoryLock, MemoryStore, ObjectLock, ObjectStoreBasedLock, unique_identity,
};
#[cfg(feature = "majority")]
pub use majority::Majority;
#[cfg(feature = "sessions")]
pub use sessions::{Session, SessionBuilder, SessionElector};
pub use store::{FromEnv, StoreError, StoreErrorKind, StoreUnfit};
pub use term::{FencingToken, RunOutcome, TermEndReason};
pub use timings::{ConfigError, Timings};
