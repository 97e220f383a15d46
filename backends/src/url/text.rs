//! The forms that all locations have in common: each is a [`Location`], and in a configuration file, it has the form of its URL.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
#[cfg(feature = "azure")]
use serde::ser::Error as _;
use serde::ser::{Serialize, Serializer};

use super::{Location, UrlError};

/// Reads a location from its URL. The error is that of `FromStr`, which does not repeat the URL.
struct UrlVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err = UrlError>> Visitor<'_> for UrlVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the URL of a lock")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(UrlVisitor(PhantomData))
    }
}

/// Fails if the location has a SAS. A text with the SAS would reveal a secret, and a text without the SAS would name
/// another location.
impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            #[cfg(feature = "azure")]
            Self::Azure(location) if location.sas.is_some() => Err(S::Error::custom(format!(
                "{self} has a SAS, which is a secret and is not written; take the SAS off the location first, and give \
                 it by AZURE_STORAGE_CONNECTION_STRING"
            ))),
            other => serializer.collect_str(other),
        }
    }
}

macro_rules! locations {
    ($($(#[$attribute:meta])* $variant:ident($location:ty),)*) => {
        $(
            $(#[$attribute])*
            impl From<$location> for Location {
                fn from(location: $location) -> Self {
                    Self::$variant(location)
                }
            }

            $(#[$attribute])*
            impl<'de> Deserialize<'de> for $location {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserializer.deserialize_str(UrlVisitor(PhantomData))
                }
            }

            /// As the [`Location`] of this object is written.
            $(#[$attribute])*
            impl Serialize for $location {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    Location::from(self.clone()).serialize(serializer)
                }
            }
        )*
    };
}

locations! {
    #[cfg(feature = "s3")]
    S3(super::S3Location),
    #[cfg(feature = "gcs")]
    Gcs(super::GcsLocation),
    #[cfg(feature = "azure")]
    Azure(super::AzureLocation),
    #[cfg(feature = "kubernetes")]
    Lease(super::LeaseLocation),
    #[cfg(feature = "opendal-services")]
    Opendal(super::OpendalLocation),
    #[cfg(unix)]
    File(super::FileLocation),
    #[cfg(unix)]
    SequencedFile(super::SequencedFileLocation),
    Memory(super::MemoryLocation),
}
