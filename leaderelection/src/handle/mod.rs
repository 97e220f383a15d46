//! What the rest of the process sees of an election: who leads, what has changed, and whether the elector is healthy.

pub(crate) mod addresses;
pub(crate) mod board;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod observation;
pub(crate) mod observe;
pub(crate) mod probes;
pub(crate) mod reconfigure;
pub(crate) mod status;
pub(crate) mod tuning;

pub use crate::election::{BeginReason, Operation};
pub use health::{HealthCheck, Unhealthy};
pub use history::{Change, Loss, REMEMBERED_TRANSITIONS, Transition};
pub use observation::{LastError, ObservedLease};
pub use observe::{Observable, Observation, Observer, observe};
pub use probes::Probes;
pub use status::{ElectorDropped, LeaderHandle, LeaderStatus, TransferError};
