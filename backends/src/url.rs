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

use leaderelection::implement::{ConditionalStore, VersionedObject};
use leaderelection::{ObjectLock, StoreError};
#[cfg(feature = "azure")]
pub use leaderelection_azure::AzureLocation;
#[cfg(feature = "gcs")]
pub use leaderelection_gcs::GcsLocation;
#[cfg(feature = "kubernetes")]
pub use leaderelection_kubernetes::LeaseLocation;
#[cfg(feature = "opendal-services")]
pub use leaderelection_opendal::{OpendalLocation, OpendalService};
#[cfg(feature = "s3")]
pub use leaderelection_s3::S3Location;
use leaderelection_sequenced::{CreateOnlyStore, SequencedStore};
pub use leaderelection_store_support::url::UrlError;
use leaderelection_store_support::url::{Place, strange};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(unix)]
pub use self::file::FileLocation;
pub use self::memory::MemoryLocation;
#[cfg(unix)]
pub use self::sequenced::SequencedFileLocation;

#[cfg(test)]
mod authorities;
#[cfg(unix)]
mod file;
mod memory;
#[cfg(unix)]
mod sequenced;
#[cfg(test)]
mod spelling;
#[cfg(test)]
mod tests;

macro_rules! locations {
    ($($(#[$attribute:meta])* $doc:literal $variant:ident($location:ident),)*) => {
        /// An object in any of the stores. `Display` shows the URL that names the object, without a SAS.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Location {
            $(#[doc = $doc] $(#[$attribute])* $variant($location),)*
        }

        impl Location {
            fn place(&self) -> &dyn Place {
                match self {
                    $($(#[$attribute])* Self::$variant(location) => location,)*
                }
            }

            fn place_mut(&mut self) -> &mut dyn Place {
                match self {
                    $($(#[$attribute])* Self::$variant(location) => location,)*
                }
            }
        }

        $(
            $(#[$attribute])*
            impl From<$location> for Location {
                fn from(location: $location) -> Self {
                    Self::$variant(location)
                }
            }
        )*

        /// Fails if the location has a SAS. A text with the SAS would reveal a secret, and a text without the SAS would name
        /// another location.
        impl Serialize for Location {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($(#[$attribute])* Self::$variant(location) => location.serialize(serializer),)*
                }
            }
        }
    };
}

locations! {
    #[cfg(feature = "s3")]
    "An object in Amazon S3 or a compatible store."
    S3(S3Location),
    #[cfg(feature = "gcs")]
    "An object in Google Cloud Storage."
    Gcs(GcsLocation),
    #[cfg(feature = "azure")]
    "A blob in Azure Blob Storage."
    Azure(AzureLocation),
    #[cfg(feature = "kubernetes")]
    "A Kubernetes Lease."
    Lease(LeaseLocation),
    #[cfg(feature = "opendal-services")]
    "An object in a service that the crate `opendal` reaches."
    Opendal(OpendalLocation),
    #[cfg(unix)]
    "An object in a local directory."
    File(FileLocation),
    #[cfg(unix)]
    "An object in a local directory with one file per write."
    SequencedFile(SequencedFileLocation),
    "An object in the memory of this process."
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
        self.place().store().await
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
        self.place().server().await
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
        *location.place_mut().key_mut() = key.into();
        location
    }

    /// The object's key in the store.
    #[must_use]
    pub fn key(&self) -> &str {
        self.place().key()
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
            Some("s3") => Err(without_feature("s3", "s3://bucket/key")),
            #[cfg(not(feature = "gcs"))]
            Some("gs") => Err(without_feature("gcs", "gs://bucket/object")),
            #[cfg(not(feature = "azure"))]
            Some("az" | "https" | "http") => Err(without_feature("azure", "az://account/container/blob")),
            #[cfg(not(feature = "kubernetes"))]
            Some("lease") => Err(without_feature("kubernetes", "lease://namespace/name")),
            #[cfg(not(feature = "opendal-services"))]
            Some("oss" | "cos" | "tos") => {
                Err(without_feature("opendal-services", "oss://bucket/key?endpoint=https://host"))
            }
            Some(scheme @ ("b2" | "obs" | "swift" | "upyun")) => Err(without_conditions(scheme)),
            _ => {
                let problem = strange(text).unwrap_or_else(|| {
                    "the URL begins with none of s3://, gs://, az://, https://, lease://, oss://, cos://, tos://, file:/// \
                     and memory:"
                        .to_owned()
                });
                Err(UrlError::new(problem, "s3://bucket/key or file:///directory/name"))
            }
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place().fmt(f)
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        leaderelection_store_support::url::deserialize(deserializer)
    }
}

// Unused if all features are on.
#[allow(dead_code)]
fn without_feature(feature: &str, example: &'static str) -> UrlError {
    UrlError::new(format!("this program was built without the feature {feature} of leaderelection-backends"), example)
}

/// The error of a service that `opendal` reaches and that holds no lock.
fn without_conditions(scheme: &str) -> UrlError {
    let problem = format!(
        "{scheme}:// holds no lock: through opendal, this service can neither create nor replace an object on a condition; \
         use a service that can, and if this one also speaks S3's protocol, run leaderelect probe on its s3:// URL first"
    );
    UrlError::new(problem, "oss://bucket/key?endpoint=https://host or s3://bucket/key?endpoint=https://host")
}
