//! Locations in configuration files, each in the form of its URL.

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

macro_rules! as_url {
    ($location:ty) => {
        impl<'de> Deserialize<'de> for $location {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(UrlVisitor(PhantomData))
            }
        }
    };
    ($location:ty, without secrets) => {
        as_url!($location);

        impl Serialize for $location {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

as_url!(Location);
#[cfg(unix)]
as_url!(super::FileLocation, without secrets);
as_url!(super::MemoryLocation, without secrets);
#[cfg(feature = "gcs")]
as_url!(super::GcsLocation, without secrets);
#[cfg(feature = "kubernetes")]
as_url!(super::LeaseLocation, without secrets);
#[cfg(feature = "opendal-services")]
as_url!(super::OpendalLocation, without secrets);
#[cfg(feature = "s3")]
as_url!(super::S3Location, without secrets);
#[cfg(feature = "azure")]
as_url!(super::AzureLocation);

/// Fails if the location has a SAS.
impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            #[cfg(feature = "azure")]
            Self::Azure(location) => location.serialize(serializer),
            other => serializer.collect_str(other),
        }
    }
}

/// Fails if the location has a SAS. A text with the SAS would reveal a secret, and a text without the SAS would name
/// another location.
#[cfg(feature = "azure")]
impl Serialize for super::AzureLocation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.sas.is_some() {
            return Err(S::Error::custom(format!(
                "{self} has a SAS, which is a secret and is not written; take the SAS off the location first, and give \
                 it by AZURE_STORAGE_CONNECTION_STRING"
            )));
        }
        serializer.collect_str(self)
    }
}
