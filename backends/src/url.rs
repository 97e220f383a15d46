//! Locks named by a URL, for command lines and configuration files.
//!
//! | URL | names | feature |
//! |---|---|---|
//! | `s3://bucket/key?region=…&endpoint=…&path_style=true&bare_etags=true&ca=…` | `S3Location` | `s3` |
//! | `gs://bucket/object?endpoint=…` | `GcsLocation` | `gcs` |
//! | `az://account/container/blob?ca=…` | `AzureLocation` | `azure` |
//! | `https://account.blob.core.windows.net/container/blob?sas…&ca=…` | `AzureLocation` | `azure` |
//! | `lease://namespace/name?label=…`, or `lease:///name` | `LeaseLocation` | `kubernetes` |
//! | `oss://bucket/key?endpoint=…&path_style=true&keep=…&ca=…` | `OpendalLocation` | `opendal-services` |
//! | `cos://bucket/key?endpoint=…&keep=…&ca=…` | `OpendalLocation` | `opendal-services` |
//! | `tos://bucket/key?endpoint=…&region=…&ca=…` | `OpendalLocation` | `opendal-services` |
//! | `file:///directory/name` | [`FileLocation`] | |
//! | `sequenced+file:///directory/name?keep=…` | [`SequencedFileLocation`] | |
//! | `memory:name` | [`MemoryLocation`] | |
//!
//! Credentials come from the environment, as each cloud's own tools find them. The one exception is a
//! SAS of Azure, which is a URL by nature; it is never shown.
//!
//! In a configuration file that is read with serde, a location is this one string. A location with a SAS is read, and
//! not written: writing it fails.
//!
//! ```
//! use leaderelection::{ObjectStoreBasedLock, unique_identity};
//! use leaderelection_backends::url::Location;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let location: Location = "file:///var/lib/my-service/scheduler".parse()?;
//! let lock = location.lock(unique_identity()).await?;
//! assert_eq!(lock.describe(), "file:///var/lib/my-service/scheduler");
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

#[cfg(any(feature = "azure", feature = "gcs", feature = "s3"))]
use leaderelection::StoreErrorKind;
use leaderelection::{ConditionalStore, ObjectLock, StoreError, VersionedObject};
use leaderelection_sequenced::{CreateOnlyStore, SequencedStore};

#[cfg(feature = "azure")]
pub use self::azure::AzureLocation;
#[cfg(unix)]
pub use self::file::FileLocation;
#[cfg(feature = "gcs")]
pub use self::gcs::GcsLocation;
#[cfg(feature = "kubernetes")]
pub use self::lease::LeaseLocation;
pub use self::memory::MemoryLocation;
#[cfg(feature = "opendal-services")]
pub use self::opendal::{OpendalLocation, OpendalService};
#[cfg(feature = "s3")]
pub use self::s3::S3Location;
#[cfg(unix)]
pub use self::sequenced::SequencedFileLocation;

#[cfg(feature = "azure")]
mod azure;
mod ca;
#[cfg(any(feature = "gcs", feature = "kubernetes", feature = "s3"))]
mod compiled;
#[cfg(unix)]
mod file;
#[cfg(feature = "gcs")]
mod gcs;
#[cfg(feature = "kubernetes")]
mod lease;
mod memory;
#[cfg(feature = "opendal-services")]
mod opendal;
mod parts;
#[cfg(feature = "s3")]
mod s3;
#[cfg(unix)]
mod sequenced;
#[cfg(test)]
mod spelling;
mod strange;
#[cfg(test)]
mod tests;
mod text;

/// The key in a location of which only the store is asked for.
#[cfg(any(feature = "azure", feature = "gcs", feature = "s3"))]
const ANY: &str = "any";

/// An object in any of the stores. `Display` shows the URL that names the object, without a SAS.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// An object in Amazon S3 or a compatible store.
    #[cfg(feature = "s3")]
    S3(S3Location),
    /// An object in Google Cloud Storage.
    #[cfg(feature = "gcs")]
    Gcs(GcsLocation),
    /// A blob in Azure Blob Storage.
    #[cfg(feature = "azure")]
    Azure(AzureLocation),
    /// A Lease of Kubernetes.
    #[cfg(feature = "kubernetes")]
    Lease(LeaseLocation),
    /// An object in a service that the crate `opendal` reaches.
    #[cfg(feature = "opendal-services")]
    Opendal(OpendalLocation),
    /// An object in a local directory.
    #[cfg(unix)]
    File(FileLocation),
    /// An object in a local directory with one file per write.
    #[cfg(unix)]
    SequencedFile(SequencedFileLocation),
    /// An object in the memory of this process.
    Memory(MemoryLocation),
}

impl Location {
    /// Opens the lock in this place, for the candidate `identity`.
    ///
    /// # Errors
    ///
    /// The same as for [`open`](Self::open).
    pub async fn lock(&self, identity: impl Into<String>) -> Result<ObjectLock<Arc<dyn ConditionalStore>>, StoreError> {
        Ok(ObjectLock::new(self.open().await?, self.key(), identity))
    }

    /// Opens the store that holds the object, with the environment's credentials.
    ///
    /// # Errors
    ///
    /// If the environment's settings are invalid. Nothing is sent yet, so the first request shows any refusal by the
    /// store.
    pub async fn open(&self) -> Result<Arc<dyn ConditionalStore>, StoreError> {
        Ok(match self {
            #[cfg(feature = "s3")]
            Self::S3(location) => Arc::new(location.open().await?),
            #[cfg(feature = "gcs")]
            Self::Gcs(location) => Arc::new(location.open().await?),
            #[cfg(feature = "azure")]
            Self::Azure(location) => Arc::new(location.open()?),
            #[cfg(feature = "kubernetes")]
            Self::Lease(location) => Arc::new(location.open().await?),
            #[cfg(feature = "opendal-services")]
            Self::Opendal(location) => location.open()?,
            #[cfg(unix)]
            Self::File(location) => Arc::new(location.open()),
            #[cfg(unix)]
            Self::SequencedFile(location) => Arc::new(location.open()),
            Self::Memory(location) => Arc::new(location.open()),
        })
    }

    /// Reads what the store has kept of the object, oldest first: the versions that were replaced, and the present one. The
    /// body of a deletion is empty. The result is `None` for a store that keeps only the present version, as all stores
    /// but the sequenced ones do.
    ///
    /// # Errors
    ///
    /// The same as for [`open`](Self::open), and those of a read.
    pub async fn history(&self) -> Result<Option<Vec<VersionedObject>>, StoreError> {
        match self.create_only()? {
            Some(objects) => SequencedStore::new(objects).history(self.key()).await.map(Some),
            None => Ok(None),
        }
    }

    /// Opens the store below a sequenced lock, which can only create; `None` for every other lock.
    ///
    /// # Errors
    ///
    /// The same as for [`open`](Self::open).
    pub fn create_only(&self) -> Result<Option<Arc<dyn CreateOnlyStore>>, StoreError> {
        Ok(match self {
            #[cfg(unix)]
            Self::SequencedFile(location) => Some(Arc::new(location.open().objects().clone())),
            #[cfg(feature = "opendal-services")]
            Self::Opendal(location) => {
                location.sequenced()?.map(|store| Arc::new(store.objects().clone()) as Arc<dyn CreateOnlyStore>)
            }
            _ => None,
        })
    }

    /// Returns `true` if every write is an object of its own.
    #[must_use]
    pub fn is_sequenced(&self) -> bool {
        match self {
            #[cfg(unix)]
            Self::SequencedFile(_) => true,
            #[cfg(feature = "opendal-services")]
            Self::Opendal(location) => location.service.is_sequenced(),
            _ => false,
        }
    }

    /// The URL of the server that [`open`](Self::open) asks, as location and environment resolve it. The URL includes
    /// the bucket or container, and no SAS. The result is `None` for a store on this machine.
    ///
    /// # Errors
    ///
    /// If the environment's settings are invalid. Nothing is sent.
    pub async fn endpoint(&self) -> Result<Option<String>, StoreError> {
        Ok(match self {
            #[cfg(feature = "s3")]
            Self::S3(location) => Some(location.open().await?.endpoint().await?),
            #[cfg(feature = "gcs")]
            Self::Gcs(location) => Some(location.endpoint()),
            #[cfg(feature = "azure")]
            Self::Azure(location) => Some(location.open()?.container_url().to_owned()),
            #[cfg(feature = "kubernetes")]
            Self::Lease(location) => Some(location.endpoint().await?),
            #[cfg(feature = "opendal-services")]
            Self::Opendal(location) => Some(location.resolved_endpoint()?),
            #[cfg(unix)]
            Self::File(_) | Self::SequencedFile(_) => None,
            Self::Memory(_) => None,
        })
    }

    /// The object at `key` in the same store.
    ///
    /// ```
    /// use leaderelection_backends::url::Location;
    ///
    /// let location: Location = "memory:locks/scheduler".parse()?;
    /// assert_eq!(location.with_key("locks/janitor").to_string(), "memory:locks/janitor");
    /// # Ok::<(), leaderelection_backends::url::UrlError>(())
    /// ```
    #[must_use]
    pub fn with_key(&self, key: impl Into<String>) -> Self {
        let mut location = self.clone();
        let place = match &mut location {
            #[cfg(feature = "s3")]
            Self::S3(location) => &mut location.key,
            #[cfg(feature = "gcs")]
            Self::Gcs(location) => &mut location.key,
            #[cfg(feature = "azure")]
            Self::Azure(location) => &mut location.key,
            #[cfg(feature = "kubernetes")]
            Self::Lease(location) => &mut location.key,
            #[cfg(feature = "opendal-services")]
            Self::Opendal(location) => &mut location.key,
            #[cfg(unix)]
            Self::File(location) => &mut location.key,
            #[cfg(unix)]
            Self::SequencedFile(location) => &mut location.file.key,
            Self::Memory(location) => &mut location.key,
        };
        *place = key.into();
        location
    }

    /// The object's key in the store.
    #[must_use]
    pub fn key(&self) -> &str {
        self.shown().1
    }

    /// The location in its variant, as a URL, and the key.
    fn shown(&self) -> (&dyn fmt::Display, &str) {
        match self {
            #[cfg(feature = "s3")]
            Self::S3(location) => (location, &location.key),
            #[cfg(feature = "gcs")]
            Self::Gcs(location) => (location, &location.key),
            #[cfg(feature = "azure")]
            Self::Azure(location) => (location, &location.key),
            #[cfg(feature = "kubernetes")]
            Self::Lease(location) => (location, &location.key),
            #[cfg(feature = "opendal-services")]
            Self::Opendal(location) => (location, &location.key),
            #[cfg(unix)]
            Self::File(location) => (location, &location.key),
            #[cfg(unix)]
            Self::SequencedFile(location) => (location, &location.file.key),
            Self::Memory(location) => (location, &location.key),
        }
    }
}

impl FromStr for Location {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        match text.split_once(':').map(|(scheme, _)| scheme) {
            #[cfg(feature = "s3")]
            Some("s3") => text.parse().map(Self::S3),
            #[cfg(feature = "gcs")]
            Some("gs") => text.parse().map(Self::Gcs),
            #[cfg(feature = "azure")]
            Some("az" | "https" | "http") => text.parse().map(Self::Azure),
            #[cfg(feature = "kubernetes")]
            Some("lease") => text.parse().map(Self::Lease),
            #[cfg(feature = "opendal-services")]
            Some("oss" | "cos" | "tos") => text.parse().map(Self::Opendal),
            #[cfg(unix)]
            Some("file") => text.parse().map(Self::File),
            #[cfg(unix)]
            Some("sequenced+file") => text.parse().map(Self::SequencedFile),
            Some("memory") => text.parse().map(Self::Memory),
            #[cfg(not(feature = "s3"))]
            Some("s3") => Err(UrlError::without_feature("s3", "s3://bucket/key")),
            #[cfg(not(feature = "gcs"))]
            Some("gs") => Err(UrlError::without_feature("gcs", "gs://bucket/object")),
            #[cfg(not(feature = "azure"))]
            Some("az" | "https" | "http") => Err(UrlError::without_feature("azure", "az://account/container/blob")),
            #[cfg(not(feature = "kubernetes"))]
            Some("lease") => Err(UrlError::without_feature("kubernetes", "lease://namespace/name")),
            #[cfg(not(feature = "opendal-services"))]
            Some("oss" | "cos" | "tos") => {
                Err(UrlError::without_feature("opendal-services", "oss://bucket/key?endpoint=https://host"))
            }
            Some(scheme @ ("b2" | "obs" | "swift" | "upyun")) => Err(UrlError::without_conditions(scheme)),
            _ => Err(UrlError {
                problem: strange::strange(text).unwrap_or_else(|| {
                    "the URL begins with none of s3://, gs://, az://, https://, lease://, oss://, cos://, tos://, file:/// \
                     and memory:"
                        .to_owned()
                }),
                example: "s3://bucket/key or file:///directory/name",
            }),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().0.fmt(f)
    }
}

/// The error of a URL that names no lock. The message names the problem and shows a valid URL.
///
/// The message does not repeat the invalid URL, because that URL may contain a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; a right URL looks like {example}")]
pub struct UrlError {
    problem: String,
    example: &'static str,
}

impl UrlError {
    /// The error of a bucket's name that the program has given, and not as a URL.
    #[cfg(any(feature = "azure", feature = "gcs", feature = "s3"))]
    fn fatal(self) -> StoreError {
        StoreError::new(StoreErrorKind::Fatal, self.problem)
    }

    // Unused if all features are on.
    #[allow(dead_code)]
    fn without_feature(feature: &str, example: &'static str) -> Self {
        let problem = format!("this program was built without the feature {feature} of leaderelection-backends");
        Self { problem, example }
    }

    /// The error of a service that `opendal` reaches and that holds no lock.
    fn without_conditions(scheme: &str) -> Self {
        let problem = format!(
            "{scheme}:// holds no lock: through opendal, this service can neither create nor replace an object on a \
             condition; use a service that can, and if this one also speaks S3's protocol, run leaderelect probe on its \
             s3:// URL first"
        );
        Self { problem, example: "oss://bucket/key?endpoint=https://host or s3://bucket/key?endpoint=https://host" }
    }
}
