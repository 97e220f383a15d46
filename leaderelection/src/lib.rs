//! Placeholder.

mod callbacks;
pub mod clock;
mod config;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod election;
mod elector;
mod health;
mod identity;
mod leadership;
mod lock;
mod memory;
mod object_lock;
mod record;
mod status;
mod store;

pub use callbacks::LeaderCallbacks;
pub use config::{ConfigError, JITTER_FACTOR, LeaderElectionConfig, LeaderElectionConfigBuilder};
pub use election::EndReason;
pub use elector::{DefaultLeaderElector, RunError, RunOutcome};
pub use health::{HealthCheck, Unhealthy};
pub use identity::{MAX_IDENTITY_BYTES, unique_identity};
pub use leadership::Leadership;
pub use lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
pub use memory::{MemoryLock, MemoryStore};
pub use object_lock::ObjectLock;
pub use record::{
    DEFAULT_MAX_LEASE_DURATION, LeaderElectionRecord, MAX_LEADER_TRANSITIONS, RecordError, UnknownFields,
};
pub use status::{ElectorDropped, LeaderHandle, LeaderStatus};
pub use store::{ConditionalStore, MAX_BODY_BYTES, Precondition, StoreError, StoreErrorKind, Version, VersionedObject};
