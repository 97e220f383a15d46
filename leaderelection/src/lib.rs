//! Leader election for processes that have an object store and nothing else.
//!
//! Not guaranteed: losing leadership cannot undo a request that has already been sent, or stop a thread that is
//! stuck in a system call. A resource that must not be written by two leaders has to check the
//! [fencing token](Leadership::fencing_token) and to refuse smaller ones: see [`fence`]. The deletion of the lock's
//! object ends all guarantees.
//!
//! Guaranteed, however wrong the wall clocks are, as long as no node's clock *runs* faster than another's
//! by more than lease duration / renew deadline: at most one candidate is inside its leadership window at
//! any moment. Guaranteed without any assumption about clocks: every term has a fencing token larger than
//! those of all terms that were won before.
//!
//! The semantics are those of client-go's `leaderelection`, on a [`LeaderElectionRecord`] that lives in
//! one object and is only ever written by compare-and-swap.
//!
//! # Example
//!
//! A [`MemoryStore`] stands in for the cloud here; `leaderelection-backends` has Amazon S3, Google Cloud
//! Storage, Azure Blob Storage and a local directory.
//!
//! ```
//! use std::time::Duration;
//! use leaderelection::{
//!     DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, Leadership, MemoryLock, MemoryStore,
//!     unique_identity,
//! };
//! use tokio_util::sync::CancellationToken;
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
//!     .release_on_cancel(true)
//!     .build()?;
//! let elector = DefaultLeaderElector::new(config);
//! let outcome = elector.run(shutdown).await?;
//! assert_eq!(outcome.fencing_token(), Some(0));
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! - [`DefaultLeaderElector`] competes and leads. [`LeaderElectionConfig::builder`] creates its configuration.
//! - [`Leadership`] is the view that a leader's work has of its term. [`LeaderHandle`] tells the rest of the process
//!   who leads. [`HealthCheck`] is for the liveness probe.
//! - [`ConditionalStore`] is the trait that another object store implements. The crate `leaderelection-conformance`
//!   has the suite that a store has to pass, and a probe that tests whether a running store is fit to elect leaders
//!   on. [`store_check`](LeaderElectionConfigBuilder::store_check) demands such a test at the start.
//! - [`admin`] has the interventions of an operator: transfer, forced release, recreation.
//! - [`fence`] is for the resources that a leader writes to: such a resource refuses earlier leaders.
//! - [`protocol`] has the rules by which candidates compete. The feature `unstable-election` publishes the state
//!   machines that keep these rules, for model checkers. That interface may change in any release.
//!
//! Logs are `tracing` events in a span `leader_election{name, lock, identity}`: info when leadership changes,
//! warnings and errors when the store or the work misbehaves, debug per request. Counters and gauges go
//! through the [`metrics`](https://docs.rs/metrics) facade, under the names of client-go where client-go has
//! them. An elector looks its metrics up when it begins to compete, so install the recorder before that.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod admin;
mod advertised;
mod board;
mod bounded;
mod callbacks;
mod causes;
pub mod clock;
mod config;
mod config_error;
mod config_warning;
#[cfg(feature = "unstable-election")]
pub mod election;
#[cfg(not(feature = "unstable-election"))]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "explorers of the protocol use more of it than the elector"
)]
mod election;
mod elector;
pub mod fence;
#[cfg(feature = "sessions")]
mod fleet;
mod health;
mod history;
mod identity;
mod job;
mod leadership;
mod lock;
mod memory;
#[cfg(feature = "unstable-election")]
pub mod migration;
#[cfg(all(feature = "migration", not(feature = "unstable-election")))]
#[allow(dead_code, unreachable_pub, reason = "explorers of the protocol use more of it than the lock")]
mod migration;
mod object_lock;
mod observation;
mod observe;
#[cfg(feature = "peers")]
pub mod peers;
#[doc = include_str!("../docs/protocol.md")]
pub mod protocol {}
mod random;
mod reconfigure;
mod record;
mod refused;
#[cfg(feature = "sequenced")]
pub mod sequenced;
#[cfg(feature = "unstable-election")]
pub mod session;
#[cfg(all(feature = "sessions", not(feature = "unstable-election")))]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "explorers of the protocol use more of it than the driver"
)]
mod session;
mod status;
mod store;
mod store_check;
mod sync;
mod timings;
mod tuning;
mod work_outcome;

/// The attribute that implementations of [`ObjectStoreBasedLock`] and [`ConditionalStore`] carry.
pub use async_trait::async_trait;
pub use bounded::{Bounded, NoAnswer, TimeLimit, loading_credentials};
pub use callbacks::LeaderCallbacks;
pub use causes::{one_line, with_causes};
pub use config::{LeaderElectionConfig, LeaderElectionConfigBuilder};
pub use config_error::ConfigError;
pub use config_warning::ConfigWarning;
pub use election::{BeginReason, EndReason, Operation, RunOutcome};
pub use elector::{DefaultLeaderElector, RunError};
#[cfg(feature = "sessions")]
pub use elector::{LockNameError, Session, SessionBuilder, SessionElector, Slot, Slots};
pub use health::{HealthCheck, Unhealthy};
pub use history::{Change, REMEMBERED_TRANSITIONS, Transition};
pub use identity::{MAX_IDENTITY_BYTES, unique_identity};
pub use job::{JobId, JobOutcome, REMEMBERED_JOBS};
pub use leadership::Leadership;
pub use lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
pub use memory::{MemoryLock, MemoryStore};
#[cfg(feature = "migration")]
pub use migration::Migration;
pub use object_lock::ObjectLock;
pub use observation::{LastError, ObservedLease};
pub use observe::{Observation, Observer, observe};
pub use record::{
    DEFAULT_MAX_LEASE_DURATION, HolderRank, LeaderElectionRecord, MAX_LEADER_TRANSITIONS, PeerAddress, RecordError,
    UnknownFields,
};
pub use status::{ElectorDropped, LeaderHandle, LeaderStatus, TransferError};
pub use store::{
    ConditionalStore, ListedObject, MAX_BODY_BYTES, Precondition, StoreError, StoreErrorKind, Version, VersionedObject,
};
pub use store_check::{Candidacy, StoreCheck, StoreFitness, StoreUnfit};
pub use timings::{JITTER_FACTOR, Timings};
pub use work_outcome::WorkOutcome;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
