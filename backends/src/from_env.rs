//! Stores of which a program names only the place: bucket, container or directory.
//!
//! A URL is the other name of such a place. Both ways read the environment by the code in [`url`](crate::url).

use async_trait::async_trait;
use leaderelection::StoreError;
#[cfg(any(feature = "gcs", feature = "s3"))]
use leaderelection::StoreErrorKind;
use leaderelection::store::FromEnv;

#[cfg(feature = "azure")]
use crate::azure::AzureStore;
#[cfg(unix)]
use crate::file::FileStore;
#[cfg(feature = "gcs")]
use crate::gcs::GcsStore;
#[cfg(feature = "s3")]
use crate::s3::S3Store;
#[cfg(feature = "azure")]
use crate::url::AzureLocation;
#[cfg(feature = "gcs")]
use crate::url::GcsLocation;
#[cfg(feature = "s3")]
use crate::url::S3Location;
#[cfg(any(feature = "gcs", feature = "s3"))]
use crate::url::UrlError;

/// The key in a location of which only the store is asked for.
#[cfg(any(feature = "gcs", feature = "s3"))]
const ANY: &str = "any";

/// Opens the store with the credentials, the region and the endpoint that [`S3Location::client`] finds.
#[cfg(feature = "s3")]
#[async_trait]
impl FromEnv for S3Store {
    async fn from_env(bucket: &str) -> Result<Self, StoreError> {
        Ok(S3Location::new(bucket, ANY).map_err(misnamed)?.open().await)
    }
}

/// Opens the store as [`GcsLocation::open`] does.
#[cfg(feature = "gcs")]
#[async_trait]
impl FromEnv for GcsStore {
    async fn from_env(bucket: &str) -> Result<Self, StoreError> {
        GcsLocation::new(bucket, ANY).map_err(misnamed)?.open().await
    }
}

/// Opens the store as [`AzureLocation::open`] does, in the account that the environment names.
#[cfg(feature = "azure")]
#[async_trait]
impl FromEnv for AzureStore {
    async fn from_env(container: &str) -> Result<Self, StoreError> {
        AzureLocation::open_in_environment(container)
    }
}

/// Opens the directory, of which the environment knows nothing. Never fails.
#[cfg(unix)]
#[async_trait]
impl FromEnv for FileStore {
    async fn from_env(directory: &str) -> Result<Self, StoreError> {
        Ok(Self::new(directory))
    }
}

#[cfg(any(feature = "gcs", feature = "s3"))]
fn misnamed(error: UrlError) -> StoreError {
    StoreError::new(StoreErrorKind::Fatal, error.problem)
}

#[cfg(test)]
mod tests {
    use leaderelection::{ObjectLock, ObjectStoreBasedLock};

    use super::*;

    #[cfg(any(feature = "azure", feature = "gcs", feature = "s3"))]
    #[tokio::test]
    async fn what_names_no_bucket_and_no_container_is_refused_before_anything_is_opened() {
        async fn refusal<S: FromEnv>(place: &str) -> String {
            let error = ObjectLock::<S>::from_env(place, "locks/scheduler").await.unwrap_err();
            assert_eq!(error.kind(), leaderelection::StoreErrorKind::Fatal);
            error.to_string()
        }

        for place in ["", "a/b", "s3://bucket"] {
            #[cfg(feature = "s3")]
            assert!(refusal::<S3Store>(place).await.contains("bucket"), "{place}");
            #[cfg(feature = "gcs")]
            assert!(refusal::<GcsStore>(place).await.contains("bucket"), "{place}");
            #[cfg(feature = "azure")]
            assert!(refusal::<AzureStore>(place).await.contains("container"), "{place}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn every_lock_has_an_identity_of_its_own_unless_it_is_given_one() {
        let open = || async { ObjectLock::<FileStore>::from_env("/var/lib/my-service", "scheduler").await.unwrap() };
        let (first, second) = (open().await, open().await);
        assert_eq!(first.describe(), "file:///var/lib/my-service/scheduler");
        assert_ne!(first.identity(), second.identity());
        assert_eq!(second.with_identity("node-1").identity(), "node-1");
    }
}
