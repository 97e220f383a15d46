//! The one setting of the election: a lock, or two locks while the operator moves from one to the other.

use std::str::FromStr;
use std::sync::Arc;

use leaderelection::{Majority, ObjectStoreBasedLock};
use leaderelection_backends::url::{LeaseLocation, Location, UrlError};

/// The locks that a replica must hold to lead. As a text: a URL, or the URLs of the old lock and the new one with a comma between.
#[derive(Clone, Debug, PartialEq)]
pub enum ElectedOn {
    /// One lock.
    One(Location),
    /// Two locks, while the operator moves from `old` to `new`.
    Both {
        /// The lock that is in use.
        old: Location,
        /// The lock that is to be used.
        new: Location,
    },
}

impl ElectedOn {
    /// Opens the lock, or both as one, for the candidate `identity`.
    ///
    /// # Errors
    ///
    /// If the environment's settings are invalid. Nothing is sent yet.
    pub async fn lock(&self, identity: String) -> anyhow::Result<Arc<dyn ObjectStoreBasedLock>> {
        Ok(match self {
            Self::One(lock) => Arc::new(lock.lock(identity).await?),
            Self::Both { old, new } => {
                Arc::new(Majority::both(old.lock(&identity).await?, new.lock(&identity).await?)?)
            }
        })
    }

    /// The Lease among the locks.
    pub fn lease(&self) -> Option<&LeaseLocation> {
        let locks = match self {
            Self::One(lock) => [Some(lock), None],
            Self::Both { old, new } => [Some(old), Some(new)],
        };
        locks.into_iter().flatten().find_map(|lock| match lock {
            Location::Lease(lease) => Some(lease),
            _ => None,
        })
    }
}

impl FromStr for ElectedOn {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Ok(match text.split_once(',') {
            None => Self::One(text.parse()?),
            Some((old, new)) => Self::Both { old: old.parse()?, new: new.parse()? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_names_one_lock_or_two() {
        let lease: Location = "lease://default/operator".parse().unwrap();
        let bucket: Location = "s3://bucket/locks/operator".parse().unwrap();
        assert_eq!("lease://default/operator".parse::<ElectedOn>().unwrap(), ElectedOn::One(lease.clone()));
        let both = "lease://default/operator,s3://bucket/locks/operator".parse::<ElectedOn>().unwrap();
        assert_eq!(both.lease().unwrap().key, "operator");
        assert_eq!(both, ElectedOn::Both { old: lease, new: bucket });
        assert!("lease://default/operator,".parse::<ElectedOn>().is_err());
    }
}
