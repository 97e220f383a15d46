//! The settings of an elector, which `build` checks once, and its callbacks.

pub(crate) mod builder;
pub(crate) mod callbacks;
pub(crate) mod common;
#[cfg(feature = "serde")]
mod settings;
pub(crate) mod warning;
pub(crate) mod work_outcome;

pub use builder::{LeaderElectionConfig, LeaderElectionConfigBuilder};
pub use callbacks::LeaderCallbacks;
#[cfg(feature = "serde")]
pub use settings::LeaderElectionSettings;
pub use warning::ConfigWarning;
pub use work_outcome::WorkOutcome;
