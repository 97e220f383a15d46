//! The place of a lock, which a test names to the processes that it starts.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use leaderelection::implement::ConditionalStore;
use leaderelection_backends::url::Location;

use crate::adapted::Adapted;

/// The place of a lock: a URL, or a store of another crate in JSON.
#[derive(Clone, Debug)]
pub enum Place {
    /// A lock in a store of ours.
    Url(Location),
    /// A lock in a store of another crate.
    Adapted(Adapted),
}

impl Place {
    /// Opens the store, and returns the key of the lock in it.
    ///
    /// # Errors
    ///
    /// If the environment's settings are invalid.
    pub async fn open(&self) -> anyhow::Result<(Arc<dyn ConditionalStore>, &str)> {
        Ok(match self {
            Self::Url(location) => (location.open().await?, location.key()),
            Self::Adapted(adapted) => (adapted.open(), &adapted.key),
        })
    }
}

impl FromStr for Place {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        Ok(if text.starts_with('{') { Self::Adapted(text.parse()?) } else { Self::Url(text.parse()?) })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(location) => location.fmt(f),
            Self::Adapted(adapted) => adapted.fmt(f),
        }
    }
}
