//! Leader election for processes that have an object store and nothing else.
//!
//! Not guaranteed: losing leadership cannot undo a request that has already been sent, or stop a thread that is
//! stuck in a system call. A resource that must not be written by two leaders has to check the
//! [fencing token](Leadership::fencing_token) and to refuse smaller ones: see [`fence`]. The deletion of the lock's
//! object ends all guarantees.
//!
//! Guaranteed, however wrong the wall clocks are, as long as no node's clock *runs* more than lease duration /
//! renew deadline times as fast as another's: at most one candidate is inside its leadership window at
//! any moment. Guaranteed without any assumption about clocks: every term has a fencing token larger than
//! those of all terms that were won before.
//!
//! The semantics are those of client-go's `leaderelection`, on a [`LeaderElectionRecord`] that lives in
//! one object and is only ever written by compare-and-swap.
//!
//! # Example
//!
#![cfg_attr(not(doctest), doc = include_str!("../docs/start.md"))]
//!
//! `leaderelection-backends` (here with the feature `s3`) has Google Cloud Storage, Azure Blob Storage and a local directory,
//! too. A [`MemoryStore`] replaces them in tests, and in this longer example:
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
//!   [`next_term`](Elector::next_term) leads without callbacks, and [`Term`] is a term that the caller owns.
//! - [`Leadership`] is the view that a leader's work has of its term. [`LeaderHandle`] tells the rest of the process
//!   who leads. [`HealthCheck`] is for the liveness probe, and [`Probes`] answers all probes on any HTTP server.
//! - [`campaign_with`](Elector::campaign_with) also runs what every candidate needs: a server, warm caches.
//! - [`shutdown_signal`] completes when an orchestrator ends the program.
//! - [`implement`] has the traits for a store or a lock of your own. The crate `leaderelection-conformance` has the
//!   suite that a store has to pass, and a probe that tests whether a running store is fit to elect leaders on.
//!   [`store_check`](LeaderElectionConfigBuilder::store_check) demands such a test at the start.
//! - [`admin`] has the interventions of an operator: transfer, forced release, recreation.
//! - [`fence`] is for the resources that a leader writes to: such a resource refuses earlier leaders.
//! - [`protocol`] has the rules by which candidates compete.
//!
//! The root has the names that most programs use. The others are in the modules [`causes`], [`config`], [`handle`], [`history`],
//! [`lock`], [`sessions`] and [`timings`].
//!
//! Logs are `tracing` events in a span `leader_election` with the fields `leader_election.name`, `.lock` and `.identity`: info
//! when leadership changes, warnings and errors when the store or the work misbehaves, debug per request. Counters and gauges go
//! through the [`metrics`](https://docs.rs/metrics) facade, under the names of client-go where client-go has
//! them. An elector looks its metrics up when it begins to compete, so install the recorder before that.

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
/// The token that ends an election for its caller.
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
