//! The settings of an election in a configuration file.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::LeaderElectionConfigBuilder;
use crate::history::Retention;
use crate::timings::human::Human;

/// The settings of a [`LeaderElectionConfigBuilder`] that a program can read from its configuration file. Behind the
/// feature `serde`.
///
/// Each field has the name of its setter, and may be left out. A duration is a string such as `"15s"`, and
/// `keep_history` is `{ "terms": 50, "for_at_most": "30days" }`. Set the lock, the callbacks and the clock in code.
/// `Location` of the crate `leaderelection-backends` opens a lock from a URL.
///
/// ```
/// use leaderelection::{LeaderElectionConfig, LeaderElectionSettings, MemoryLock, MemoryStore};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Config {
///     election: LeaderElectionSettings,
/// }
///
/// let file = r#"{ "election": { "lease_duration": "30s", "renew_deadline": "20s", "rank": 3 } }"#;
/// let config: Config = serde_json::from_str(file)?;
/// let lock = MemoryLock::new(MemoryStore::new(), "locks/scheduler", "node-1");
/// let config = LeaderElectionConfig::builder(lock, ()).settings(config.election).build()?;
/// assert_eq!(config.timings().lease_duration().as_secs(), 30);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The error about an invalid value names the field and the value. The error about an unknown field names the known
/// fields. `build` reports values that contradict each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElectionSettings(Fields);

impl<'de> Deserialize<'de> for LeaderElectionSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = serde_path_to_error::deserialize(deserializer);
        fields.map(Self).map_err(|error| D::Error::custom(error.to_string().trim_end()))
    }
}

/// Declares the fields, and passes each to the setter of the same name.
macro_rules! fields {
    ([$($(#[$attribute:meta])* $duration:ident,)*] $($other:ident: $type:ty,)*) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct Fields {
            $($(#[$attribute])* $duration: Option<Human>,)*
            $($other: Option<$type>,)*
        }

        impl LeaderElectionConfigBuilder {
            /// Applies the settings of a configuration file. A setting that is not in the file stays as it is. Setters
            /// that are called later override the file, for example those for command-line options.
            pub fn settings(mut self, settings: LeaderElectionSettings) -> Self {
                $($(#[$attribute])* if let Some(Human(value)) = settings.0.$duration {
                    self = self.$duration(value);
                })*
                $(if let Some(value) = settings.0.$other {
                    self = self.$other(value);
                })*
                self
            }
        }
    };
}

fields! {
    [
        lease_duration,
        renew_deadline,
        retry_period,
        request_timeout,
        follower_interval,
        step_down_cool_down,
        trust_store_clock,
        #[cfg(feature = "peers")]
        background_interval,
    ]
    advertise: String,
    advertise_to_clients: String,
    failback: bool,
    keep_history: Retention,
    name: String,
    rank: u8,
    reclaim_own_identity: bool,
    release_on_cancel: bool,
    service: String,
}
